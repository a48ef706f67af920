from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from arena.models import RenderedText, Team
from arena.services import rendered
from arena.services.rendered import forget, html_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Acme")


def test_texts_are_rendered_once(
    team: Team, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = html_of(team=team, texts=["**a**", "b", "**a**"])
    assert "<strong>a</strong>" in first[0]
    assert first[0] == first[2]
    monkeypatch.setattr(rendered, "render_markdown", lambda text: pytest.fail("rendered again"))
    with django_assert_num_queries(1):
        assert html_of(team=team, texts=["b", "**a**"]) == [first[1], first[0]]


def test_another_version_of_the_renderer_renders_anew(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    html_of(team=team, texts=["a"])
    monkeypatch.setattr(rendered, "VERSION", "next")
    monkeypatch.setattr(rendered, "render_markdown", lambda text: "new")
    assert html_of(team=team, texts=["a"]) == ["new"]


def test_teams_share_nothing(team: Team) -> None:
    html_of(team=team, texts=["a"])
    html_of(team=Team.objects.create(name="Other"), texts=["a"])
    assert RenderedText.objects.filter(team=team).count() == 1
    assert RenderedText.objects.count() == 2


def test_what_is_too_much_at_once_stays_plain_and_is_not_kept(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendered, "CHARACTERS_AT_ONCE", 12)
    html = html_of(team=team, texts=["**a**", "**b**", "**c**"])
    assert ["<strong>" in text for text in html] == [True, True, False]
    assert RenderedText.objects.count() == 2


def test_html_is_escaped_in_every_way_out(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "<script>alert(1)</script>"
    assert "<script" not in html_of(team=team, texts=[hostile])[0]
    monkeypatch.setattr(rendered, "CHARACTERS_AT_ONCE", 0)
    assert "<script" not in html_of(team=team, texts=[hostile + "!"])[0]


def test_forgotten_texts_go(team: Team) -> None:
    html_of(team=team, texts=["a", "b"])
    forget(team=team, texts=["a"])
    assert RenderedText.objects.count() == 1
