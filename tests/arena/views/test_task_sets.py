from __future__ import annotations

import base64
import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse
from model_bakery import baker
from pytest_django import DjangoAssertNumQueries

from arena.models import Attachment, Sample, SampleAttachment, TaskSet, Tournament
from arena.services.task_sets import create_draft, save_draft
from tests.arena.ingest.builders import PNG, message_line, pdf_bytes
from tests.personas import Side, World

HOSTILE = (
    "<script>window.canary = 1</script> <img src=x onerror='window.canary = 2'> "
    "[link](javascript:window.canary=3) ![p](https://example.com/pixel.png) <svg onload=window.canary=4>"
)


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def url(side: Side, name: str, **kwargs: Any) -> str:
    return reverse(f"arena:{name}", kwargs={"team": side.team_id} | kwargs)


def make(side: Side, name: str, *lines: str, replaces: TaskSet | None = None) -> TaskSet:
    content: Any = ContentFile("\n".join(lines).encode(), name=name)
    draft = create_draft(team=side.team, actor=None, file=content, filename=name, replaces=replaces)
    return save_draft(draft=draft, actor=None)


def text(response: Any) -> str:
    assert response.status_code == HTTPStatus.OK
    content: str = response.content.decode()
    return content


def test_the_list_shows_newest_versions_with_what_uses_them(world: World, member: Client) -> None:
    own: TaskSet = world.own.objects["task_set"]
    baker.make(Tournament, team=world.own.team, task_set=own, max_matches=1, _quantity=2)
    make(world.own, "x.jsonl", message_line("New", category="a"), message_line("er", category="b"), replaces=own)
    page = text(member.get(url(world.own, "task-set-list")))
    rows = re.findall(r'<td data-label="(\w+)" class="num">([^<]*)</td>', page)
    assert ("Version", "2") in rows
    assert ("Categories", "2") in rows
    assert ("Tournaments", "2") in rows
    assert page.count(own.name) == 1


def test_lists_ask_no_query_per_row(
    world: World, member: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        make(world.own, f"list {number}.jsonl", message_line(f"Say {number}", category="c"))
    with django_assert_max_num_queries(8):
        page = text(member.get(url(world.own, "task-set-list")))
    assert "list 11" in page
    many = make(world.own, "many.jsonl", *[message_line(f"Number {n}", category=f"c{n % 5}") for n in range(60)])
    with django_assert_max_num_queries(10):
        page = text(member.get(url(world.own, "task-set-detail", task_set=many.public_id)))
    assert page.count("/samples/") == 50
    sample = many.samples.all()[7]
    member.get(url(world.own, "sample-detail", task_set=many.public_id, sample=sample.public_id))
    with django_assert_max_num_queries(10):
        text(member.get(url(world.own, "sample-detail", task_set=many.public_id, sample=sample.public_id)))


def test_an_empty_list_says_what_to_do(world: World, member: Client, admin: Client) -> None:
    Tournament.objects.all().delete()
    TaskSet.objects.all().delete()
    assert "Upload a task set" in text(admin.get(url(world.own, "task-set-list")))
    page = text(member.get(url(world.own, "task-set-list")))
    assert "An admin or owner of the team uploads the first one." in page
    assert "Take this template" not in page


def test_members_read_and_are_offered_nothing_else(world: World, member: Client) -> None:
    task_set: TaskSet = world.own.objects["task_set"]
    page = text(member.get(url(world.own, "task-set-detail", task_set=task_set.public_id)))
    assert "Upload a new version" not in page
    assert "Delete this version" not in page
    assert "ZIP with attachments" in page


def test_samples_are_found_by_text_and_category(world: World, member: Client) -> None:
    task_set = make(
        world.own,
        "x.jsonl",
        message_line("About ducks", category="birds", id="first"),
        message_line("About trout", category="fish", id="second"),
        message_line("About nothing", id="third"),
    )
    detail = url(world.own, "task-set-detail", task_set=task_set.public_id)

    def keys(**query: str) -> list[str]:
        return re.findall(r'<a class="mono"[^>]*>(\w+)</a>', text(member.get(detail, query)))

    assert keys() == ["first", "second", "third"]
    assert keys(q="TROUT") == ["second"]
    assert keys(q="third") == ["third"]
    assert keys(category="birds") == ["first"]
    assert keys(category="-") == ["third"]
    assert keys(q="ducks", category="fish") == []
    assert keys(q="a\0b") == ["first", "second", "third"]
    assert "Null characters are not allowed." in text(member.get(detail, {"q": "a\0b"}))
    assert keys(page="99") == ["first", "second", "third"]


def test_a_sample_shows_all_that_belongs_to_it(world: World, member: Client) -> None:
    turns = [
        {"role": "system", "content": "Be *brief*."},
        {"role": "user", "content": [{"type": "text", "text": "Look: **this**"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call-1"}]},
        {"role": "tool", "content": "42", "tool_call_id": "call-1"},
    ]
    task_set = make(
        world.own,
        "x.jsonl",
        message_line("First"),
        json.dumps(
            {
                "input": {"messages": turns},
                "reference": "It is _42_.",
                "criteria": ["short", "right"],
                "metadata": {"source": "ticket <9>"},
                "json_schema": {"type": "object"},
                "tags": ["hard"],
            }
        ),
    )
    sample = task_set.samples.get(position=2)
    page = text(member.get(url(world.own, "sample-detail", task_set=task_set.public_id, sample=sample.public_id)))
    for expected in ("<em>brief</em>", "<strong>this</strong>", "call-1", "<em>42</em>", "short", "hard"):
        assert expected in page
    assert "ticket &lt;9&gt;" in page
    assert "&quot;type&quot;: &quot;object&quot;" in page
    assert 'rel="prev"' in page
    assert 'rel="next"' not in page


@pytest.mark.parametrize("place", ["prompt", "reference", "criteria", "category", "id"])
def test_hostile_text_is_shown_as_text(place: str, world: World, admin: Client) -> None:
    labels = {place: HOSTILE[:90] if place in ("category", "id") else HOSTILE}
    line = message_line(labels.pop("prompt", "Hi"), **labels)
    task_set = make(world.own, "x.jsonl", line)
    sample = task_set.samples.get()
    draft = create_draft(
        team=world.own.team, actor=None, file=ContentFile(line.encode(), name="y.jsonl"), filename="<script>y.jsonl"
    )
    pages = [
        url(world.own, "task-set-detail", task_set=task_set.public_id),
        url(world.own, "sample-detail", task_set=task_set.public_id, sample=sample.public_id),
        url(world.own, "draft-detail", draft=draft.public_id),
    ]
    for address in pages:
        page = text(admin.get(address))
        assert not re.search(r"<script(?![^>]* src=\"/static)", page)
        assert "<svg onload" not in page
        assert "onerror='" not in page.replace("&lt;img src=x onerror=", "")
        assert 'href="javascript:' not in page
        assert 'src="https://example.com' not in page


def test_pictures_in_messages_are_shown_without_loading_from_elsewhere(world: World, member: Client) -> None:
    data = "data:image/png;base64," + base64.b64encode(PNG).decode()
    parts = [
        {"type": "text", "text": "Compare."},
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "image_url", "image_url": {"url": "https://example.com/far.png"}},
    ]
    task_set = make(world.own, "x.jsonl", message_line(parts))
    sample = task_set.samples.get()
    page = text(member.get(url(world.own, "sample-detail", task_set=task_set.public_id, sample=sample.public_id)))
    assert f'<img src="{data}"' in page
    assert 'src="https://example.com' not in page
    assert "https://example.com/far.png" in page


def attach(side: Side, content: bytes, content_type: str) -> Attachment:
    attachment = Attachment(team=side.team, sha256="1" * 64, content_type=content_type, size=len(content))
    attachment.file.save("attachment", ContentFile(content))
    SampleAttachment.objects.create(sample=side.objects["sample"], attachment=attachment, path="attachments/a.pdf")
    return attachment


def test_a_file_is_served_without_any_power(world: World, member: Client) -> None:
    attachment = attach(world.own, pdf_bytes(), "application/pdf")
    response = member.get(url(world.own, "attachment-file", attachment=attachment.public_id))
    assert b"".join(response) == pdf_bytes()
    assert response["Content-Type"] == "application/pdf"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"].startswith("sandbox")
    assert response["Content-Disposition"] == f'inline; filename="{attachment.public_id}.pdf"'
    assert response["X-Frame-Options"] == "SAMEORIGIN"
    assert int(response["Content-Length"]) == len(pdf_bytes())


def test_a_file_of_another_type_is_only_downloaded(world: World, member: Client) -> None:
    attachment = attach(world.own, b"<script>alert(1)</script>", "text/html")
    response = member.get(url(world.own, "attachment-file", attachment=attachment.public_id))
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")


def test_the_text_of_a_pdf(world: World, member: Client) -> None:
    attachment = attach(world.own, pdf_bytes(text="Board minutes"), "application/pdf")
    assert "Board minutes" in text(member.get(url(world.own, "attachment-text", attachment=attachment.public_id)))
    broken = attachment.file.path
    Path(broken).write_bytes(b"%PDF-1.4 no more")
    page = text(member.get(url(world.own, "attachment-text", attachment=attachment.public_id)))
    assert "is broken" in page


def test_a_used_version_is_not_offered_for_deletion(world: World, admin: Client) -> None:
    task_set: TaskSet = world.own.objects["task_set"]
    baker.make(Tournament, team=world.own.team, task_set=task_set, max_matches=1)
    delete = url(world.own, "task-set-delete", task_set=task_set.public_id)
    assert "1 tournament uses this version, so it stays." in text(admin.get(delete))
    response = admin.post(delete)
    assert response.status_code == HTTPStatus.SEE_OTHER
    assert "1 tournament uses this version" in text(admin.get(response["Location"]))
    assert TaskSet.objects.filter(pk=task_set.pk).exists()


def test_deletion_asks_and_then_deletes(world: World, admin: Client) -> None:
    task_set: TaskSet = world.own.objects["task_set"]
    delete = url(world.own, "task-set-delete", task_set=task_set.public_id)
    assert "This destroys 1 sample" in text(admin.get(delete))
    assert TaskSet.objects.filter(pk=task_set.pk).exists()
    response = admin.post(delete)
    assert "is deleted, with 1 sample." in text(admin.get(response["Location"]))
    assert not Sample.objects.filter(task_set=task_set.pk).exists()


def test_a_sample_of_another_set_is_not_found(world: World, member: Client) -> None:
    other = make(world.own, "x.jsonl", message_line("Hi"))
    sample: Sample = world.own.objects["sample"]
    address = url(world.own, "sample-detail", task_set=other.public_id, sample=sample.public_id)
    assert member.get(address).status_code == HTTPStatus.NOT_FOUND


def test_downloads_have_readable_names(world: World, member: Client) -> None:
    task_set = make(world.own, "お問い合わせ.jsonl", message_line("Hi"))
    response = member.get(url(world.own, "task-set-jsonl", task_set=task_set.public_id))
    assert b'"id": "s0001"' in b"".join(response)
    assert "utf-8''" in response["Content-Disposition"]
