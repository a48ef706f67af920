from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.tokens import default_token_generator
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from arena.models import Invitation, Role
from arena.services import audit
from arena.services.logins import create_login_link
from arena.tokens import hash_token
from tests.personas import PASSWORD, Side
from tests.url_samples import UrlSample


def extend(side: Side) -> None:
    token = f"invitation-token-{side.name}"
    side.objects["invitation_token"] = token
    side.objects["invitation"] = Invitation.objects.create(
        team=side.team,
        email=f"canary-{side.name}-invited@example.com".lower(),
        role=Role.MEMBER,
        token_hash=hash_token(token),
        invited_by=side.user(Role.OWNER),
        expires_at=timezone.now() + timedelta(days=7),
    )
    rater = side.user(Role.RATER)
    side.objects["login_link_token"] = create_login_link(user=rater)
    side.objects["reset"] = {
        "uidb64": urlsafe_base64_encode(force_bytes(rater.pk)),
        "token": default_token_generator.make_token(rater),
    }
    audit.record(
        team=side.team, actor=side.user(Role.OWNER), action="canary", target=f"{side.canary}-target", new={"a": "b"}
    )


def _team(side: Side) -> dict[str, object]:
    return {"team": side.team_id}


def _rater(side: Side) -> dict[str, object]:
    return {"team": side.team_id, "member": side.members[Role.RATER].pk}


def _nothing(side: Side) -> dict[str, object]:
    return {}


NEW_PASSWORDS = {"password": "four lanes and a tilt", "password_again": "four lanes and a tilt"}

SAMPLES = {
    "arena:home": UrlSample(_nothing),
    "arena:login": UrlSample(
        _nothing, post=lambda side: {"username": side.user(Role.MEMBER).email, "password": PASSWORD}
    ),
    "arena:logout": UrlSample(_nothing, get=False, post=lambda side: {}),
    "arena:login-link": UrlSample(lambda side: {"token": side.objects["login_link_token"]}, post=lambda side: {}),
    "arena:password-reset": UrlSample(_nothing, post=lambda side: {"email": side.user(Role.MEMBER).email}),
    "arena:password-reset-sent": UrlSample(_nothing),
    "arena:password-reset-confirm": UrlSample(lambda side: dict(side.objects["reset"])),
    "arena:profile": UrlSample(_nothing, post=lambda side: {"name": "New name", "language": ""}),
    "arena:password-change": UrlSample(
        _nothing,
        post=lambda side: {
            "old_password": PASSWORD,
            "new_password1": NEW_PASSWORDS["password"],
            "new_password2": NEW_PASSWORDS["password"],
        },
    ),
    "arena:invitation-accept": UrlSample(lambda side: {"token": side.objects["invitation_token"]}),
    "arena:team-list": UrlSample(_nothing),
    "arena:team-create": UrlSample(_nothing, post=lambda side: {"name": "Another team"}),
    "arena:team-home": UrlSample(_team),
    "arena:team-settings": UrlSample(_team, post=lambda side: {"name": "Renamed"}),
    "arena:team-delete": UrlSample(_team, post=lambda side: {"name": side.team.name}),
    "arena:team-leave": UrlSample(_team, post=lambda side: {}),
    "arena:audit-log": UrlSample(_team),
    "arena:member-list": UrlSample(_team),
    "arena:member-role": UrlSample(_rater, get=False, post=lambda side: {"role": "member"}),
    "arena:member-remove": UrlSample(_rater, post=lambda side: {}),
    "arena:member-login-link": UrlSample(_rater, get=False, post=lambda side: {}),
    "arena:invitation-create": UrlSample(
        _team, get=False, post=lambda side: {"email": "new@example.com", "role": "member"}
    ),
    "arena:invitation-revoke": UrlSample(
        lambda side: {"team": side.team_id, "invitation": side.objects["invitation"].public_id},
        get=False,
        post=lambda side: {},
    ),
}
