"""Random draws that depend on their key alone, never on the order of arrival."""

from __future__ import annotations

import hashlib
from statistics import NormalDist

_NORMAL = NormalDist()


def digest(*parts: str | bytes) -> str:
    encoded = [part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass") for part in parts]
    # The lengths keep ("ab", "c") and ("a", "bc") apart.
    lengths = ",".join([str(len(data)) for data in encoded]).encode()
    return hashlib.blake2b(b"\0".join([lengths, *encoded]), digest_size=16).hexdigest()


def uniform(*key: str) -> float:
    """In [0, 1)."""
    return int(digest(*key)[:13], 16) / 16**13


def normal(*key: str) -> float:
    return _NORMAL.inv_cdf(min(max(uniform(*key), 1e-6), 1 - 1e-6))


def ranked(items: int, *key: str) -> list[int]:
    """The numbers 0..items-1 in drawn order."""
    return sorted(range(items), key=lambda index: uniform(*key, str(index)))
