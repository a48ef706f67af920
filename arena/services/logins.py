"""Ways in: passwords with a limit on guesses, and single-use links."""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import authenticate
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.models import LoginLink, Membership, Role, Team, User
from arena.services import audit
from arena.services.mail import mail_is_configured
from arena.services.members import Refused, locked_membership
from arena.tokens import hash_token, make_token

LOGIN_LINK_HOURS = 24


class TooManyAttempts(Exception):
    """Neither says nor depends on whether the account exists."""


def client_address(request: HttpRequest) -> str:
    """Whom to count guesses against: the peer, or what our own proxy says of it; IPv6 by its /64 network."""
    peer: str = request.META.get("REMOTE_ADDR", "")
    if settings.SECURE_PROXY_SSL_HEADER:
        # The last entry is our proxy's own; those before it are whatever the client wrote.
        peer = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or peer
    # Some proxies write the port too; counted with it, every connection would be a new address.
    for form in (peer, peer.rpartition(":")[0].strip("[]")):
        try:
            address = ipaddress.ip_address(form)
        except ValueError:
            continue
        return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
    return peer


def _key(kind: str, value: str) -> str:
    # Hashed, since an e-mail address may hold what a cache key may not.
    return f"attempts:{kind}:{hashlib.sha256(value.encode()).hexdigest()}"


def _count(key: str, limit: int) -> bool:
    """Take one attempt; False when there are none left. Counted before the check, so parallel guesses count too."""
    seconds = settings.LOGIN_LOCK_SECONDS
    cache.add(key, 0, seconds)
    try:
        taken = cache.incr(key)
    except ValueError:  # It expired between the two lines.
        cache.set(key, 1, seconds)
        taken = 1
    if taken == limit + 1:
        cache.touch(key, seconds)  # The lock lasts its full time from the moment it falls.
    return taken <= limit


def _give_back(key: str) -> None:
    try:
        cache.decr(key)
    except ValueError:
        return  # Expired: nothing is held against anybody.


def take_attempt(request: HttpRequest, *, email: str, kind: str = "login") -> tuple[str, str]:
    """Count an attempt against account and address, or raise."""
    account = _key(f"{kind}-account", email.strip().lower())
    address = _key(f"{kind}-address", client_address(request))
    address_free = _count(address, settings.LOGIN_FAILURES_PER_ADDRESS)
    account_free = _count(account, settings.LOGIN_FAILURES_PER_ACCOUNT)
    if not (address_free and account_free):
        raise TooManyAttempts
    return account, address


def check_password(request: HttpRequest, *, email: str, password: str) -> User | None:
    account, address = take_attempt(request, email=email)
    # Hashes once whether or not the account exists, so the time tells nothing.
    user = authenticate(request, username=email, password=password)
    if not isinstance(user, User):
        return None
    cache.delete(account)
    # Only this attempt: a login of one's own must not wipe the guesses made at others.
    _give_back(address)
    return user


def create_login_link(*, user: User, created_by: User | None = None, sets_password: bool = False) -> str:
    """A token that opens the account once. For the command line and the demo; pages go through the rules below."""
    token = make_token()
    LoginLink.objects.create(
        user=user,
        token_hash=hash_token(token),
        created_by=created_by,
        sets_password=sets_password,
        expires_at=timezone.now() + timedelta(hours=LOGIN_LINK_HOURS),
    )
    return token


@transaction.atomic
def create_reset_link(*, team: Team, actor: User, member: Membership) -> str:
    """An owner's or admin's way to let a member choose a new password where no mail can be sent."""
    if mail_is_configured():
        raise Refused(_("Mail is configured: the member can reset the password from the login page."))
    own = locked_membership(team=team, user=actor)
    target = Membership.objects.select_related("user").filter(team=team, pk=member.pk).first()
    if target is None:
        raise Refused(_("This person is no longer in the team."))
    if not own.at_least(Role(target.role)):
        raise Refused(_("Only an owner can make a link for an owner."))
    elsewhere = Membership.objects.filter(user=target.user).exclude(team=team)
    if elsewhere.exists() or target.user.is_superuser:
        # The link opens the whole account, and this team has no say over the rest of it.
        raise Refused(
            _("This account reaches beyond this team. Ask the operator: manage.py make_login_link %(email)s")
            % {"email": target.user.email}
        )
    LoginLink.objects.filter(user=target.user, used_at=None).update(expires_at=timezone.now())
    token = create_login_link(user=target.user, created_by=actor, sets_password=True)
    audit.record(team=team, actor=actor, action="member.reset_link", target=target.user.email)
    return token


def use_login_link(*, link: LoginLink, password: str | None = None) -> User:
    """Consume the link and, where it asks for one, set the new password with it."""
    with transaction.atomic():
        now = timezone.now()
        # The condition and the mark are one statement: of two clicks, one wins. A condition on the user by a join
        # would put all of it into a subquery, which PostgreSQL does not look at again after waiting for the row.
        active = User.objects.filter(is_active=True)
        link_now = LoginLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=now, user__in=active)
        won = link_now.update(used_at=now)
        if not won:
            raise Refused(_("This link was used already or has expired. Ask for a new one."))
        user = link.user
        if link.sets_password:
            if not password:
                raise Refused(_("Choose a new password."))
            user.set_password(password)
            user.save(update_fields=["password"])
    return user
