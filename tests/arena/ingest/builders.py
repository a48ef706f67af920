from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from arena.ingest import DEFAULT_LIMITS, Inspection, Limits, inspect_upload

SHARED = Path(os.environ.get("TILTYARD_SHARED") or Path(__file__).resolve().parents[3].parent / "shared")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
GIF = b"GIF89a" + b"\0" * 40


def shared(relative: str) -> Path:
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"{relative} is not beside this checkout")
    return path


def message_line(content: Any = "Say hello.", **labels: Any) -> str:
    return json.dumps({"input": {"messages": [{"role": "user", "content": content}]}, **labels})


def attachment_line(*paths: str, **labels: Any) -> str:
    parts: list[dict[str, str]] = [{"type": "text", "text": "Sum it up."}]
    return message_line(parts + [{"type": "file_ref", "path": path} for path in paths], **labels)


def inspect_bytes(
    folder: Path, content: bytes | str, name: str = "samples.jsonl", *, limits: Limits = DEFAULT_LIMITS
) -> Inspection:
    path = folder / "stored-upload"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return inspect_upload(path, name, limits=limits)


def inspect_lines(folder: Path, *lines: str, limits: Limits = DEFAULT_LIMITS) -> Inspection:
    return inspect_bytes(folder, "".join(line + "\n" for line in lines), limits=limits)


def sentences(inspection: Inspection) -> list[str]:
    return [str(problem) for problem in inspection.problems]


def zip_bytes(files: dict[str, bytes | str], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def patch_directory(data: bytes, name: str, offset: int, packed: bytes) -> bytes:
    """Overwrite a field of an entry's record in the central directory."""
    at = data.rfind(name.encode()) - 46
    assert data[at : at + 4] == b"PK\x01\x02"
    return data[: at + offset] + packed + data[at + offset + len(packed) :]


def directory_offset(data: bytes, name: str) -> int:
    at = data.rfind(name.encode()) - 46
    found: int = struct.unpack("<L", data[at + 42 : at + 46])[0]
    return found


def pdf_bytes(pages: int = 1, text: str = "Hello board", *, encrypt: bool = False, packed_page: bytes = b"") -> bytes:
    kids = " ".join(f"{5 + 2 * i} 0 R" for i in range(pages))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        # No password opens it: the check value belongs to none.
        4: b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"6f" * 32 + b"> /U <" + b"75" * 32 + b"> >>",
    }
    for i in range(pages):
        stream = f"BT /F1 24 Tf 20 100 Td ({text}) Tj ET".encode()
        objects[5 + 2 * i] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Resources << /Font << /F1 3 0 R >> >> "
            + f"/Contents {6 + 2 * i} 0 R >>".encode()
        )
        packing = b""
        if packed_page:
            stream, packing = packed_page, b" /Filter /FlateDecode"
        objects[6 + 2 * i] = b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(stream), packing, stream)
    body = b"%PDF-1.4\n"
    offsets = {}
    for number, content in objects.items():
        offsets[number] = len(body)
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offsets[number] for number in objects)
    size = len(objects) + 1
    extra = b" /Encrypt 4 0 R /ID [<00> <00>]" if encrypt else b""
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
        + b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (size, extra, len(body))
    )
