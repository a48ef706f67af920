from __future__ import annotations

import re

# PostgreSQL stores no NUL, and UTF-8 has no lone surrogates.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Text as a database can hold it; what it cannot hold is shown as a replacement sign."""
    return UNSTORABLE.sub("\ufffd", text)
