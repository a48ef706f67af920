"""Reads PDFs in a process of its own: one JSON request a line in, one JSON reply a line out.

It is started as a script, in isolated mode and without the environment of the server, because PDF parsers are
where hostile files do harm. It imports nothing of the project.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any


def _confine(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _allow_seconds(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _read(pdfium: Any, path: str, pages: int, characters: int) -> dict[str, object]:
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as bad:
        encrypted = bad.err_code == pdfium.raw.FPDF_ERR_PASSWORD
        return {"error": "encrypted" if encrypted else "broken"}
    try:
        count = len(document)
        restricted = pdfium.raw.FPDF_GetSecurityHandlerRevision(document) >= 0
        reply = {"pages": count, "restricted": restricted, "text": ""}
        if count == 0:
            return {"error": "broken"}
        if count <= pages:
            reply["text"] = _text(document, pdfium, count, characters)
        return reply
    finally:
        document.close()


def _text(document: Any, pdfium: Any, count: int, characters: int) -> str:
    found: list[str] = []
    left = characters
    for number in range(count):
        if left <= 0:
            break
        try:
            page = document[number]
            text_page = page.get_textpage()
            text = text_page.get_text_range()[:left]
            text_page.close()
            page.close()
        except pdfium.PdfiumError:
            # One broken page leaves the others readable; a file without any readable page has no text.
            continue
        found.append(text)
        left -= len(text)
    # Lone surrogates and NUL come out of broken fonts, and could not be stored.
    joined = "\n\n".join(found).replace("\x00", "").replace("\r\n", "\n")
    return joined.encode(errors="replace").decode()


def main() -> None:
    # Whatever a library prints must not mix with the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import pypdfium2 as pdfium

    _confine(int(sys.argv[1]))
    # The time of a file counts from here, not from the start of the interpreter.
    replies.write("ready\n")
    replies.flush()
    for line in sys.stdin:
        request = json.loads(line)
        _allow_seconds(request["seconds"])
        try:
            reply = _read(pdfium, request["path"], request["pages"], request["characters"])
        except MemoryError:
            reply = {"error": "memory"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
