from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from .builders import GIF, PNG, inspect_lines, message_line, sentences


def line_of(*messages: Any) -> str:
    return json.dumps({"input": {"messages": list(messages)}})


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def image(url: Any) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": url}]


USER = {"role": "user", "content": "Hello"}


def test_all_roles_are_kept(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "No lists."},
        USER,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]},
        {"role": "tool", "content": "42", "tool_call_id": "c1", "name": "answer"},
    ]
    found = inspect_lines(tmp_path, line_of(*messages))
    assert found.problems == ()
    assert found.preview[0].messages == [
        *messages[:3],
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function"}]},
        messages[4],
    ]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "input.messages: is empty"),
        (["hello"], "input.messages[0]: must be an object with role and content"),
        ([{"role": "user"}], "input.messages[0].content: must be text or a list of parts"),
        ([{"role": ["user"], "content": "x"}], "input.messages[0].role: must be one of"),
        ([{"role": "user", "content": "  \n"}], "input.messages[0].content: is empty"),
        ([{"role": "user", "content": []}], "input.messages[0].content: is empty"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "content: is empty"),
        ([{"role": "system", "content": "x"}], "input.messages: has no user message"),
        (
            [USER, {"role": "assistant", "content": "Hi"}],
            "input.messages[1].role: the last message must be of the user (or a tool)",
        ),
        ([{"role": "user", "content": ["x"]}], "input.messages[0].content[0]: must be an object with a type"),
        (
            [{"role": "user", "content": [{"type": "audio"}]}],
            "input.messages[0].content[0].type: must be one of text, file_ref, image_url",
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": 3}]}],
            "input.messages[0].content[0].text: must be text",
        ),
        (
            [{"role": "system", "content": [{"type": "file_ref", "path": "attachments/a.pdf"}]}, USER],
            "input.messages[0].content[0]: files and images can only stand in user messages",
        ),
        ([{**USER, "tool_calls": "x"}], "input.messages[0].tool_calls: must be a list"),
        ([{**USER, "name": 3}], "input.messages[0].name: must be text"),
    ],
)
def test_bad_messages_are_named_by_field(tmp_path: Path, messages: list[Any], sentence: str) -> None:
    found = inspect_lines(tmp_path, line_of(*messages))
    assert found.good_count == 0
    assert any(sentence in text for text in sentences(found)), sentences(found)


def test_messages_that_are_no_list(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, '{"input": {"messages": "hello"}}', '{"input": {}}')
    assert [problem.message for problem in found.problems] == ["must be a list of messages"] * 2


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("../secret.pdf", "leaves its folder by .."),
        ("attachments/../../etc/passwd.pdf", "leaves its folder by .."),
        ("/etc/passwd.pdf", "is absolute"),
        ("C:\\boot.pdf", "holds a backslash"),
        ("c:boot.pdf", "begins with a drive letter"),
        ("https://example.org/a.pdf", "has an empty part"),
        ("attachments/a.docx", "must be one of pdf, png, jpg, jpeg, gif, webp"),
        ("", "is empty"),
        (None, "must be the path of a file under attachments/"),
        ("attachments/a.pdf", "upload a ZIP"),
    ],
)
def test_file_references_in_plain_jsonl(tmp_path: Path, path: Any, sentence: str) -> None:
    found = inspect_lines(tmp_path, message_line([{"type": "file_ref", "path": path}]))
    assert found.good_count == 0
    assert len(found.problems) == 1
    assert found.problems[0].field == "input.messages[0].content[0].path"
    assert sentence in found.problems[0].message


def test_images_by_data_url(tmp_path: Path) -> None:
    found = inspect_lines(
        tmp_path,
        message_line(image({"url": data_url(PNG), "detail": "low"})),
        message_line(image(data_url(GIF, "image/gif"))),
    )
    assert found.problems == ()
    assert found.preview[0].messages[0]["content"][0]["image_url"] == {"url": data_url(PNG), "detail": "low"}
    assert found.preview[1].messages[0]["content"][0]["image_url"] == {"url": data_url(GIF, "image/gif")}


def test_a_remote_image_is_kept_with_a_warning(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, message_line(image({"url": "https://example.org/a.png"})))
    assert found.clean
    assert [problem.severity for problem in found.problems] == ["warning"]
    assert "never fetched" in found.problems[0].message


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://example.org/a.png", "must be an https URL"),
        ("file:///etc/passwd", "must be an https URL"),
        ("https://", "must be an https URL"),
        ("https://[::1", "is not a valid URL"),
        ("data:image/png,xx", "must be data:image/...;base64"),
        ("data:image/png;base64,@@@@", "is not valid base64"),
        ("data:image/png;base64,bödy", "is not valid base64"),
        (data_url(GIF), "says image/png and is a GIF file"),
        (data_url(b"%PDF-1.4"), "is a PDF file"),
        (data_url(b"<svg onload=alert(1)>", "image/svg+xml"), "it must be a PNG, JPEG, GIF or WebP"),
        (7, "must be an object with a url"),
    ],
)
def test_bad_images_are_named(tmp_path: Path, url: Any, sentence: str) -> None:
    found = inspect_lines(tmp_path, message_line(image({"url": url})))
    assert found.good_count == 0
    assert len(found.problems) == 1
    assert sentence in found.problems[0].message


def test_unknown_keys_are_kept_in_metadata(tmp_path: Path) -> None:
    record = {
        "input": {
            "messages": [{"role": "user", "weight": 2, "content": [{"type": "text", "text": "x", "mark": 1}]}],
            "model": "any",
        },
        "usage_output": "What was answered then",
        "team": {"name": "billing"},
        "metadata": {"kept": True},
    }
    found = inspect_lines(tmp_path, json.dumps(record))
    assert found.problems == ()
    assert found.preview[0].metadata == {
        "kept": True,
        "usage_output": "What was answered then",
        "team": {"name": "billing"},
        "input.model": "any",
        "input.messages[0].weight": 2,
        "input.messages[0].content[0].mark": 1,
    }


def test_an_unknown_key_never_overwrites_metadata(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, '{"prompt": "x", "team": 1, "metadata": {"team": 2}}')
    assert sentences(found) == [
        "samples.jsonl line 1: team: is an unknown key that metadata holds too; rename one of them"
    ]
