from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

ATTACHMENTS = "attachments"
_DRIVE = re.compile(r"[A-Za-z]:")
_IGNORED_NAMES = {".DS_Store", "Thumbs.db", "desktop.ini", ".gitkeep"}


class BadPath(ValueError):
    pass


def clean_path(raw: str) -> str:
    """A relative path in NFC, or BadPath with the reason as the end of a sentence."""
    path = unicodedata.normalize("NFC", raw)
    if not path.strip("/"):
        raise BadPath("is empty")
    if not path.isprintable():
        raise BadPath("holds a control character")
    if "\\" in path:
        raise BadPath("holds a backslash; use /")
    if path.startswith("/"):
        raise BadPath("is absolute; it must be relative")
    if _DRIVE.match(path):
        raise BadPath("begins with a drive letter; it must be relative")
    segments = path.removeprefix("./").split("/")
    if ".." in segments:
        raise BadPath("leaves its folder by ..")
    if "" in segments or "." in segments:
        raise BadPath("has an empty part")
    if len(path) > 500:
        raise BadPath("is longer than 500 characters")
    return "/".join(segments)


def same_name(path: str) -> str:
    """Equal for two paths that some file system would take for one."""
    return unicodedata.normalize("NFC", path.casefold())


def is_ignored(path: str) -> bool:
    """What operating systems leave in folders and archives by themselves."""
    parts = PurePosixPath(path).parts
    return bool(parts) and ("__MACOSX" in parts or parts[-1].startswith("._") or parts[-1] in _IGNORED_NAMES)


def suffix_of(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
