from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from arena.ingest.types import DEFAULT_LIMITS, Limits

WORKER = Path(__file__).with_name("pdf_worker.py")
START_SECONDS = 30.0
_REPLY_BYTES = 16 * 1024 * 1024
# What an interpreter may need to start; nothing else of the server's environment gets near a PDF.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_REASONS = {
    "encrypted": "is encrypted; remove its password",
    "broken": "is broken: it cannot be opened as a PDF",
    "memory": "needs too much memory to read",
    "timeout": "takes too long to read",
    "crash": "cannot be read: the reader stopped on it, or ran out of memory",
}


@dataclass(frozen=True, slots=True)
class PdfReport:
    pages: int
    text: str
    restricted: bool = False
    problem: str | None = None


class PdfReader:
    """A confined process that reads PDFs one by one, started at the first and again after a failure."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def read(self, path: Path) -> PdfReport:
        fresh = self._process is None
        reply = self._ask(path)
        if reply.get("error") in ("crash", "memory") and not fresh:
            # Earlier files may have used the memory up: only a new process can tell.
            reply = self._ask(path)
        error = reply.get("error")
        if error is not None:
            return PdfReport(0, "", problem=_REASONS[str(error)])
        pages = int(str(reply["pages"]))
        if pages > self._limits.pdf_pages:
            problem = f"has {pages:,} pages; the limit is {self._limits.pdf_pages:,}"
            return PdfReport(pages, "", problem=problem)
        return PdfReport(pages, str(reply["text"]), restricted=bool(reply["restricted"]))

    def _ask(self, path: Path) -> dict[str, object]:
        request = {
            "path": str(path.resolve()),
            "pages": self._limits.pdf_pages,
            "characters": self._limits.pdf_text_characters,
            "seconds": math.ceil(self._limits.pdf_seconds),
        }
        try:
            process = self._process or self._start()
            _send(process, json.dumps(request).encode() + b"\n")
            line = _receive(process, self._limits.pdf_seconds)
        except TimeoutError:
            self.close()
            return {"error": "timeout"}
        except (BrokenPipeError, EOFError):
            self.close()
            return {"error": "crash"}
        reply: dict[str, object] = json.loads(line)
        if reply.get("error") == "memory":
            self.close()
        return reply

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        process = self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and script, no shell
            [sys.executable, "-I", "-X", "utf8", str(WORKER), str(self._limits.pdf_memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            close_fds=True,
            bufsize=0,  # nothing may be left to flush when the reader is gone
        )
        _receive(process, START_SECONDS)
        return process


def _send(process: subprocess.Popen[bytes], request: bytes) -> None:
    if process.stdin is None:
        raise EOFError
    process.stdin.write(request)


def _receive(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """One line of the reader."""
    if process.stdout is None:
        raise EOFError
    deadline = time.monotonic() + seconds
    received = bytearray()
    while not received.endswith(b"\n"):
        left = deadline - time.monotonic()
        # poll, as select refuses descriptors over 1,023 in a busy server.
        waiting = select.poll()
        waiting.register(process.stdout, select.POLLIN)
        if left <= 0 or not waiting.poll(left * 1000):
            raise TimeoutError
        chunk = os.read(process.stdout.fileno(), 64 * 1024)
        if not chunk or len(received) > _REPLY_BYTES:
            raise EOFError
        received += chunk
    return bytes(received)


def read_pdf(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> PdfReport:
    """Page count and text of one stored PDF."""
    with PdfReader(limits) as reader:
        return reader.read(path)
