"""Single-use tokens: the person gets the token, the database only its hash."""

from __future__ import annotations

import hashlib
import secrets


def make_token() -> str:
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    # 256 random bits need no salt and no slow hash.
    return hashlib.sha256(token.encode()).hexdigest()
