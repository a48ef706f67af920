from __future__ import annotations

HEAD_BYTES = 1024
PDF = "application/pdf"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TYPE_BY_SUFFIX = {
    ".pdf": PDF,
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
ARCHIVE_SUFFIXES = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".zst")
_NAMES = {PDF: "PDF", "image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
)
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!")


def sniff(head: bytes) -> str | None:
    """The content type of a file that may be attached, by its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(tuple(magic for magic, _ in _FOREIGN)):
        return None
    # Readers of PDF accept some bytes before the header, and real files have them.
    return PDF if b"%PDF-" in head[:HEAD_BYTES] else None


def type_name(content_type: str) -> str:
    return _NAMES[content_type]


def describe(head: bytes) -> str:
    """What a file is, in words, for the sentence that refuses it."""
    known = sniff(head)
    if known:
        return f"a {type_name(known)} file"
    if not head:
        return "empty"
    for magic, words in _FOREIGN:
        if head.startswith(magic):
            return words
    if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    return "of an unknown kind"


def is_archive(head: bytes) -> bool:
    return head.startswith(_ARCHIVES)
