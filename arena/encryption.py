"""Fields that are secrets: encrypted under TILTYARD_FIELD_KEYS, which rotate apart from SECRET_KEY."""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class UnreadableSecret(Exception):
    """No key at hand opens it: the keys were changed without keeping the old one."""


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key.strip()) for key in settings.FIELD_KEYS])


def encrypt(plain: str) -> str:
    return _fernet().encrypt(plain.encode()).decode()


def decrypt(token: str) -> str:
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise UnreadableSecret("None of TILTYARD_FIELD_KEYS opens this secret; enter it again.") from error
