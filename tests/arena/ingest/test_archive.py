from __future__ import annotations

import io
import stat
import struct
import unicodedata
import zipfile
from pathlib import Path
from random import Random

import pytest

from arena.ingest import Inspection, Limits, UploadError, open_attachment, read_samples

from .builders import (
    PNG,
    attachment_line,
    directory_offset,
    inspect_bytes,
    message_line,
    patch_directory,
    sentences,
    zip_bytes,
)

SMALL = Limits(unpacked_bytes=200_000)


def inspect_zip(folder: Path, data: bytes, limits: Limits | None = None) -> Inspection:
    return inspect_bytes(folder, data, "upload.zip", limits=limits or Limits())


@pytest.mark.parametrize("top", ["", "my set/"])
@pytest.mark.parametrize("name", ["samples.jsonl", "any name.jsonl"])
def test_samples_at_the_root_or_in_the_only_folder(tmp_path: Path, top: str, name: str) -> None:
    data = zip_bytes(
        {
            f"{top}{name}": attachment_line("attachments/a.png"),
            f"{top}attachments/a.png": PNG,
            "__MACOSX/._a.png": b"junk",
            f"{top}.DS_Store": b"junk",
            f"{top}attachments/._a.png": b"junk",
        }
    )
    found = inspect_zip(tmp_path, data)
    assert found.problems == ()
    assert found.preview[0].attachment_paths == ("attachments/a.png",)
    assert [(a.path, a.content_type, a.size) for a in found.attachments] == [
        ("attachments/a.png", "image/png", len(PNG))
    ]
    with open_attachment(tmp_path / "stored-upload", "upload.zip", "attachments/a.png") as stream:
        assert stream.read() == PNG


def test_a_table_in_an_archive(tmp_path: Path) -> None:
    found = inspect_zip(tmp_path, zip_bytes({"questions.csv": "prompt\nHi\n"}))
    assert found.clean
    assert found.dialect == "table"


def test_problems_name_the_file_inside(tmp_path: Path) -> None:
    found = inspect_zip(tmp_path, zip_bytes({"samples.jsonl": "broken\n" + message_line()}))
    assert sentences(found)[0].startswith("samples.jsonl line 1: is not valid JSON")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"readme.txt": "x"}, "upload.zip: holds no samples.jsonl"),
        ({"a/b/samples.jsonl": "x"}, "upload.zip: holds no samples.jsonl"),
        ({"a.jsonl": "x", "b.jsonl": "x"}, "holds several files of samples (a.jsonl, b.jsonl)"),
        ({"samples.jsonl": "x", "../evil.png": "x"}, "../evil.png: the path leaves its folder by .."),
        ({"samples.jsonl": "x", "a/../../evil": "x"}, "a/../../evil: the path leaves its folder by .."),
        ({"samples.jsonl": "x", "/etc/passwd": "x"}, "/etc/passwd: the path is absolute"),
        ({"samples.jsonl": "x", "C:/boot.ini": "x"}, "C:/boot.ini: the path begins with a drive letter"),
        ({"samples.jsonl": "x", "..\\evil.png": "x"}, "the path holds a backslash"),
        ({"samples.jsonl": "x", "a//b.png": "x"}, "a//b.png: the path has an empty part"),
        ({"samples.jsonl": "x", "a\nb.png": "x"}, "the path holds a control character"),
        ({"samples.jsonl": "x", "../": ""}, "the path leaves its folder by .."),
        ({"samples.jsonl": "x", "__MACOSX/../../x": ""}, "the path leaves its folder by .."),
        (
            {"samples.jsonl": "x", "attachments/A.png": "x", "attachments/a.PNG": "x"},
            "attachments/a.PNG: has the same name as 'attachments/A.png'",
        ),
        (
            {"samples.jsonl": "x", "attachments/é.png": "x", "attachments/e\u0301.png": "x"},
            "has the same name as 'attachments/é.png'",
        ),
        ({"samples.jsonl": "x", "attachments/in.zip": "x"}, "in.zip: is an archive inside the archive"),
    ],
)
def test_refused_with_a_sentence(tmp_path: Path, files: dict[str, bytes | str], sentence: str) -> None:
    found = inspect_zip(tmp_path, zip_bytes(files))
    assert found.refused
    assert not found.usable
    assert any(sentence in text for text in sentences(found)), sentences(found)
    with pytest.raises(UploadError):
        list(read_samples(tmp_path / "stored-upload", "upload.zip", only_good=True))


def test_every_bad_entry_is_named(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {"samples.jsonl": "x", "../a": "x", "/b": "x", "c\\d": "x"}
    assert inspect_zip(tmp_path, zip_bytes(files)).error_count == 3


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("samples.jsonl", message_line("a"))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("samples.jsonl", message_line("b"))
    found = inspect_zip(tmp_path, target.getvalue())
    assert "has the same name as 'samples.jsonl'" in sentences(found)[0]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_special_files_are_refused(tmp_path: Path, kind: int) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("samples.jsonl", attachment_line("attachments/a.png"))
        info = zipfile.ZipInfo("attachments/a.png")
        info.external_attr = (kind | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    found = inspect_zip(tmp_path, target.getvalue())
    assert sentences(found) == ["attachments/a.png: is a link or a special file"]


def test_encrypted_entries_are_refused(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line()})
    found = inspect_zip(tmp_path, patch_directory(data, "samples.jsonl", 8, struct.pack("<H", 1)))
    assert sentences(found) == ["samples.jsonl: is encrypted; make the archive without a password"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_methods_are_refused(tmp_path: Path, method: int) -> None:
    found = inspect_zip(tmp_path, zip_bytes({"samples.jsonl": message_line()}, compression=method))
    assert sentences(found) == ["samples.jsonl: is packed by an unusual method; use Deflate"]


# Named, for the bytes of an archive hold the time: two processes that collect a second apart would disagree.
@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04 cut off", b"not an archive", zip_bytes({"a": "b"})[:-30]],
    ids=["cut off", "something else", "without its end"],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    found = inspect_zip(tmp_path, data)
    assert found.refused
    assert len(found.problems) == 1
    assert "ZIP archive" in sentences(found)[0]


def test_an_archive_is_known_by_content(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line()})
    assert inspect_bytes(tmp_path, data, "samples.jsonl").clean
    office = inspect_bytes(tmp_path, data, "questions.xlsx")
    assert "it is a ZIP archive or an Office document" in sentences(office)[0]


def test_a_bomb_is_refused_by_what_it_states(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line(), "attachments/a.png": b"\0" * 20_000_000})
    found = inspect_zip(tmp_path, data)
    assert "attachments/a.png: unpacks to more than 100 times its packed size" in sentences(found)
    assert "upload.zip: unpacks to more than 100 times its packed size" in sentences(found)


def test_the_total_is_measured_over_all_entries(tmp_path: Path) -> None:
    noise = bytes(range(256)) * 300
    files: dict[str, bytes | str] = {
        "samples.jsonl": attachment_line("attachments/a.png", "attachments/b.png", "attachments/c.png"),
        **{f"attachments/{name}.png": PNG + noise for name in "abc"},
    }
    data = zip_bytes(files, compression=zipfile.ZIP_STORED)
    stated = inspect_zip(tmp_path, data, SMALL)
    assert "the limit is 200,000" in sentences(stated)[0]
    for name in "bc":
        data = patch_directory(data, f"attachments/{name}.png", 24, struct.pack("<L", 100))
    lying = inspect_zip(tmp_path, data, SMALL)
    assert lying.refused
    assert lying.good_count == 0


def test_sizes_that_lie_are_found(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line()})
    larger = inspect_zip(tmp_path, patch_directory(data, "samples.jsonl", 24, struct.pack("<L", 9_999)))
    assert sentences(larger) == [
        f"samples.jsonl: is damaged: the archive says 9,999 bytes and it has {len(message_line())}"
    ]
    smaller = inspect_zip(tmp_path, patch_directory(data, "samples.jsonl", 24, struct.pack("<L", 9)))
    assert smaller.refused
    packed = inspect_zip(tmp_path, patch_directory(data, "samples.jsonl", 20, struct.pack("<L", 10**6)))
    assert sentences(packed) == ["upload.zip: has entries that overlap"]


def test_a_wrong_checksum_is_found(tmp_path: Path) -> None:
    line = message_line("findme")
    data = zip_bytes({"samples.jsonl": line}, compression=zipfile.ZIP_STORED).replace(b"findme", b"foundu")
    found = inspect_zip(tmp_path, data)
    assert sentences(found) == ["samples.jsonl: is damaged: its checksum is wrong"]
    assert found.refused


def test_a_wrong_checksum_in_an_attachment_refuses_the_archive(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {
        "samples.jsonl": attachment_line("attachments/a.png") + "\n" + message_line(),
        "attachments/a.png": PNG + b"findme",
    }
    data = zip_bytes(files, compression=zipfile.ZIP_STORED).replace(b"findme", b"foundu")
    found = inspect_zip(tmp_path, data)
    assert found.refused
    assert "attachments/a.png: is damaged: its checksum is wrong" in sentences(found)
    with (
        pytest.raises(UploadError, match="checksum"),
        open_attachment(tmp_path / "stored-upload", "upload.zip", "attachments/a.png") as stream,
    ):
        stream.read()


def test_damaged_data_is_found(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({"samples.jsonl": message_line("x" * 200)}))
    at = 30 + len("samples.jsonl")
    data[at : at + 8] = b"\xff" * 8
    assert sentences(inspect_zip(tmp_path, bytes(data))) == ["samples.jsonl: is damaged: its data cannot be unpacked"]


def test_entries_that_share_bytes_are_refused(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line(), "attachments/a.png": PNG})
    offset = struct.pack("<L", directory_offset(data, "samples.jsonl"))
    found = inspect_zip(tmp_path, patch_directory(data, "attachments/a.png", 42, offset))
    assert sentences(found) == ["upload.zip: has entries that overlap"]


def test_too_many_entries_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line(), **{f"attachments/{i}.png": PNG for i in range(5)}})
    limits = Limits(archive_entries=5)
    assert sentences(inspect_zip(tmp_path, data, limits)) == ["upload.zip: has 6 entries; the limit is 5"]
    end = data.rfind(b"PK\x05\x06")
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**9, 10**9, 10**11, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    wide = inspect_zip(tmp_path, data[:end] + record + locator + data[end:])
    assert sentences(wide) == ["upload.zip: has 1,000,000,000 entries; the limit is 10,000"]


@pytest.mark.parametrize("codec", ["utf-8", "cp932"])
def test_names_without_the_utf8_flag_are_recovered(tmp_path: Path, codec: str) -> None:
    raw = "資料".encode(codec)
    placeholder = b"Q" * len(raw)
    data = zip_bytes(
        {
            "samples.jsonl": attachment_line("attachments/資料.png"),
            f"attachments/{placeholder.decode()}.png": PNG,
        },
        compression=zipfile.ZIP_STORED,
    )
    found = inspect_zip(tmp_path, data.replace(placeholder, raw))
    assert found.problems == ()
    assert found.attachments[0].path == "attachments/資料.png"


def test_a_name_that_reads_in_two_ways_is_found_by_either(tmp_path: Path) -> None:
    # These bytes of code page 437 are also Japanese, which is the likelier reading.
    data = zip_bytes(
        {"samples.jsonl": attachment_line("attachments/éa.png"), "attachments/QQ.png": PNG},
        compression=zipfile.ZIP_STORED,
    )
    found = inspect_zip(tmp_path, data.replace(b"QQ", "éa".encode("cp437")))
    assert found.problems == ()


@pytest.mark.parametrize(("stored", "written"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_names_match_after_normalising(tmp_path: Path, stored: str, written: str) -> None:
    name = "attachments/ガバナンス.png"
    forms = {"NFC": unicodedata.normalize("NFC", name), "NFD": unicodedata.normalize("NFD", name)}
    assert forms["NFC"] != forms["NFD"]
    data = zip_bytes({"samples.jsonl": attachment_line(forms[written]), forms[stored]: PNG})
    found = inspect_zip(tmp_path, data)
    assert found.problems == ()
    assert found.preview[0].attachment_paths == (forms["NFC"],)


def test_missing_and_unreferenced_attachments(tmp_path: Path) -> None:
    lines = [attachment_line("attachments/b.png", "a.png"), message_line()]
    data = zip_bytes({"samples.jsonl": "\n".join(lines), "attachments/a.png": PNG, "notes.txt": "x"})
    found = inspect_zip(tmp_path, data)
    field = "input.messages[0].content"
    assert sentences(found) == [
        "notes.txt: is not under attachments/ and was left out",
        f"samples.jsonl line 1: {field}[1].path: 'attachments/b.png' is not in the upload",
        f"samples.jsonl line 1: {field}[2].path: 'a.png' is not in the upload; did you mean 'attachments/a.png'?",
        "attachments/a.png: no sample refers to it; it was left out",
    ]
    assert found.good_count == 1


@pytest.mark.parametrize("path", ["attachments/b.png", "../samples.jsonl", "samples.jsonl", ""])
def test_only_attachments_can_be_opened(tmp_path: Path, path: str) -> None:
    inspect_zip(tmp_path, zip_bytes({"samples.jsonl": message_line(), "attachments/a.png": PNG}))
    with (
        pytest.raises(UploadError, match="is not in the upload"),
        open_attachment(tmp_path / "stored-upload", "upload.zip", path),
    ):
        pytest.fail("opened")


def test_no_damage_makes_the_reader_fail(tmp_path: Path) -> None:
    whole = zip_bytes({"samples.jsonl": attachment_line("attachments/資.png"), "attachments/資.png": PNG})
    directory = whole.index(b"PK\x01\x02")
    random = Random(7)
    for at in range(directory, len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << random.randrange(8)
        found = inspect_zip(tmp_path, bytes(damaged))
        assert found.clean or found.problems


def test_an_entry_without_a_name_is_refused(tmp_path: Path) -> None:
    data = zip_bytes({"samples.jsonl": message_line(), "\x7f": "x"})
    found = inspect_zip(tmp_path, data.replace(b"\x7f", b"\0"))
    assert sentences(found) == ["\N{REPLACEMENT CHARACTER}: the path holds a control character"]
