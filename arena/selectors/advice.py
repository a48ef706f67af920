"""What an error code means, and what somebody can do about it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

_KEY = _("Check the key of the provider and what it may call, then run a test on the model's page.")
_WIRE = _("Check the address of the provider and the model id, then run a test on the model's page.")
_WAIT = _("The provider asks for patience: it is waited for. Fewer calls at a time would meet this less often.")
_REPAIR = _("A judge that does this often is better replaced; more repairs help.")
_EMPTY = _("A higher answer limit helps models that think before they answer.")

_MEANINGS: dict[str, tuple[Any, Any]] = {
    "RATE_LIMITED": (_("too many requests"), _WAIT),
    "SERVER_ERROR": (_("the provider failed"), _("Usually passes; it was tried again. If it stays, ask the provider.")),
    "CONNECTION": (_("no connection"), _WIRE),
    "TIMEOUT": (_("no answer in time"), _("Raise the timeouts of the provider, or take a quicker model.")),
    "AUTH": (_("not let in"), _KEY),
    "NOT_FOUND": (_("no such model or address"), _WIRE),
    "BAD_REQUEST": (_("refused as malformed"), _("Look at the parameters of the model; a test shows which it takes.")),
    "REDIRECT": (_("sent elsewhere"), _("Redirects are not followed: enter the address it leads to.")),
    "BLOCKED_ADDRESS": (
        _("the address is not allowed"),
        _("Private addresses need the operator's word: ALLOW_PRIVATE_ENDPOINTS."),
    ),
    "TOO_LARGE": (_("the reply was too large"), _("Set an answer limit for the model.")),
    "CONTEXT_OVERFLOW": (
        _("longer than the model's context"),
        _("Shorten the sample, or leave this model out of such samples."),
    ),
    "UNSUPPORTED_INPUT": (
        _("takes no such file"),
        _("Let the model take PDF files or images on its page, if it can; such matches stay void otherwise."),
    ),
    "UNSUPPORTED_PARAMETER": (
        _("a parameter is refused"),
        _("It is left out from now on; the model's page shows which."),
    ),
    "REFUSED": (_("refused to answer"), _("Another judge or candidate may not; the match is kept as it is.")),
    "EMPTY": (_("empty reply"), _EMPTY),
    "EMPTY_ANSWER": (_("empty answer"), _EMPTY),
    "INVALID_JSON": (
        _("no readable verdict"),
        _("A judge that does this often is better replaced; more repairs help."),
    ),
    "INVALID_SCHEMA": (
        _("a verdict without a winner"),
        _("A judge that does this often is better replaced; more repairs help."),
    ),
    "API_ERROR": (_("the provider answered with an error"), _("The attempts below say which; the match is void.")),
    "OTHER_ERROR": (_("another error"), _("The match shows what happened.")),
    "OTHER": (_("another error"), _("The match shows what happened.")),
    "late": (_("came back too late"), _("Paid for and kept as a call; another attempt had taken its place.")),
    "lost": (_("lost with its worker"), _("It was called again; whether the first call is charged is not known.")),
}


def meaning_of(code: str) -> tuple[Any, Any]:
    """In a few words, and what to do. A code that this table does not know speaks for itself."""
    return _MEANINGS.get(code, (code, ""))
