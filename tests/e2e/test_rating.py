"""The rater's page in a browser: each key one vote, and nothing that tells whose answers they are."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from annotation.models import Assignment, Campaign, CampaignItem, Rater, Vote
from annotation.services.raters import join_as_member
from annotation.services.votes import Said, cast_vote
from arena.models import (
    Attachment,
    Candidate,
    LanguageModel,
    Membership,
    Provider,
    Role,
    Sample,
    SampleAttachment,
    Trial,
    User,
)
from tests.annotation.world import make_team, opened, played
from tests.arena.ingest.builders import pdf_bytes

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
CHOICES = [("1", "left"), ("2", "both_good"), ("3", "right"), ("4", "both_bad")]


@pytest.fixture
def campaign(settings: Any, tmp_path: Any) -> Campaign:
    settings.MEDIA_ROOT = tmp_path / "media"
    team = make_team()
    tournament = played(team, matches=9, prefix="Zyzzogeton-")
    for number, trial in enumerate(Trial.objects.filter(team=team).order_by("pk")):
        Trial.objects.filter(pk=trial.pk).update(answer=f"Answer number {number}.\n\n" + "It goes on. " * 40)
    return opened(team, tournament, guidelines="Prefer *exact* answers.")


@pytest.fixture
def one(campaign: Campaign) -> Rater:
    user = User.objects.create_user("rater@example.com")
    membership = Membership.objects.create(team=campaign.team, user=user, role=Role.MEMBER)
    return join_as_member(campaign=campaign, membership=membership)


def let_in(context: Any, live_server: Any, one: Rater) -> None:
    client = Client()
    assert one.user is not None
    client.force_login(one.user)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])


@pytest.fixture
def url(live_server: Any, one: Rater) -> str:
    return str(live_server.url) + reverse("annotation:rate", kwargs={"campaign": one.campaign.public_id})


@pytest.fixture
def rating(page: Page, context: Any, live_server: Any, one: Rater, url: str) -> Page:
    let_in(context, live_server, one)
    page.goto(url)
    return page


def token_of(page: Page) -> str:
    return str(page.locator("#vote-form input[name=token]").input_value())


def wait_for_next(page: Page, token: str) -> None:
    expect(page.locator("#vote-form input[name=token]")).not_to_have_value(token)


def press(page: Page, key: str) -> None:
    token = token_of(page)
    page.keyboard.press(key)
    wait_for_next(page, token)


def test_each_key_stores_one_vote_with_its_meaning(rating: Page) -> None:
    tokens = []
    for key, _choice in [*CHOICES, ("Numpad1", "left")]:
        tokens.append(token_of(rating))
        press(rating, key)
    rating.keyboard.press("s")
    rating.get_by_label("I cannot tell which is better").check()
    tokens.append(token_of(rating))
    rating.get_by_role("button", name="Skip this pair").click()
    wait_for_next(rating, tokens[-1])
    votes = list(Vote.objects.order_by("pk").select_related("assignment"))
    assert [vote.choice for vote in votes] == [choice for _key, choice in CHOICES] + ["left", "skip"]
    assert [vote.assignment.token for vote in votes] == tokens
    for vote in votes:
        sides = {"left": vote.assignment.left, "right": vote.assignment.right, "skip": ""}
        assert vote.outcome == sides.get(vote.choice, "tie")
    assert votes[0].active_ms is not None
    assert votes[-1].reason == "cannot_tell"


def test_text_with_shortcut_letters_and_keys_with_modifiers_store_nothing(rating: Page) -> None:
    rating.keyboard.press("c")
    box = rating.get_by_label("Comment").first
    expect(box).to_be_focused()
    with rating.expect_response(re.compile("/draft/$")):
        rating.keyboard.type("1234 sugar, jokes; 3 > 2?")
    expect(box).to_have_value("1234 sugar, jokes; 3 > 2?")
    rating.locator("h1").evaluate("document.activeElement.blur()")
    for combination in ("Control+1", "Alt+2", "Shift+3", "Meta+4"):
        rating.keyboard.press(combination)
    rating.evaluate(
        """() => {
            const one = {key: "1", code: "Digit1", bubbles: true};
            for (const more of [{isComposing: true}, {repeat: true}, {keyCode: 229}])
                document.body.dispatchEvent(new KeyboardEvent("keydown", {...one, ...more}));
        }"""
    )
    rating.keyboard.press("?")
    expect(rating.locator("#keys-dialog")).to_be_visible()
    rating.keyboard.press("1")
    rating.get_by_label("Keys vote").uncheck()
    rating.get_by_role("button", name="Close").click()
    rating.keyboard.press("1")
    rating.wait_for_timeout(300)
    assert not Vote.objects.exists()
    rating.reload()
    expect(rating.get_by_label("Comment").first).to_have_value(re.compile("sugar"))


def test_a_held_key_and_another_layout_store_one_vote(rating: Page) -> None:
    token = token_of(rating)
    rating.evaluate(
        """() => {
            const down = (repeat) => document.body.dispatchEvent(
                new KeyboardEvent("keydown", {key: "&", code: "Digit1", bubbles: true, repeat}));
            down(false);
            for (let times = 0; times < 30; times++) down(true);
        }"""
    )
    wait_for_next(rating, token)
    assert Vote.objects.get().choice == "left"


def test_of_two_clicks_at_once_the_first_is_kept(rating: Page) -> None:
    token = token_of(rating)
    rating.evaluate(
        """() => {
            const button = (value) => document.querySelector(`#vote-form button[value=${value}]`);
            button("right").click();
            button("left").click();
        }"""
    )
    wait_for_next(rating, token)
    assert Vote.objects.get().choice == "right"


def test_two_tabs_show_one_pair_and_end_with_one_vote(rating: Page, url: str) -> None:
    other = rating.context.new_page()
    other.goto(url)
    token = token_of(rating)
    assert token_of(other) == token
    press(rating, "1")
    other.keyboard.press("3")
    expect(other.get_by_text("This pair has a vote already: A is better.")).to_be_visible()
    assert [vote.choice for vote in Vote.objects.all()] == ["left"]


def test_a_lost_network_keeps_the_comment_and_one_retry_stores_one_vote(rating: Page) -> None:
    rating.keyboard.press("c")
    rating.keyboard.type("Says nothing of the fee")
    token = token_of(rating)
    lost: list[str] = []

    def swallow(route: Route) -> None:
        # The first vote reaches the server, and its answer is lost.
        lost.append(route.request.url)
        if len(lost) == 1:
            route.fetch()
        route.abort()

    rating.route(re.compile(r"/vote/$"), swallow)
    rating.route(re.compile(r"/draft/$"), lambda route: route.abort())
    button = rating.get_by_role("button", name="B is better")
    button.click()
    expect(rating.get_by_role("alert")).to_contain_text("kept on this page")
    expect(rating.get_by_label("Comment").first).to_have_value("Says nothing of the fee")
    rating.unroute(re.compile(r"/vote/$"))
    button.click()
    wait_for_next(rating, token)
    vote = Vote.objects.get()
    assert vote.choice == "right"
    assert "Says nothing of the fee" in {vote.first_comment, vote.second_comment}


def test_a_vote_by_somebody_signed_out_meanwhile_keeps_the_text(rating: Page, one: Rater, live_server: Any) -> None:
    rating.keyboard.press("c")
    rating.keyboard.type("Kept")
    rating.locator("h1").evaluate("document.activeElement.blur()")
    rating.context.clear_cookies(name="sessionid")
    rating.keyboard.press("1")
    expect(rating.get_by_role("alert")).to_contain_text("signed out")
    let_in(rating.context, live_server, one)
    press(rating, "1")
    assert "Kept" in {Vote.objects.get().first_comment, Vote.objects.get().second_comment}


def test_undo_brings_the_pair_back_with_what_was_typed(rating: Page) -> None:
    token = token_of(rating)
    rating.get_by_text("Tags and comment on B").click()
    rating.locator("[data-pane=right]").get_by_label("tone").check()
    press(rating, "2")
    rating.keyboard.press("u")
    expect(rating.locator("#vote-form input[name=token]")).to_have_value(token)
    expect(rating.locator("[data-pane=right]").get_by_label("tone")).to_be_checked()
    press(rating, "1")
    assert [(vote.choice, vote.is_current) for vote in Vote.objects.order_by("pk")] == [
        ("both_good", False),
        ("undone", False),
        ("left", True),
    ]


def test_back_shows_no_open_ballot_for_a_pair_that_has_a_vote(rating: Page, url: str, live_server: Any) -> None:
    # The page before has an entry of its own in the history.
    rating.goto(f"{live_server.url}/teams/")
    rating.goto(url)
    token = token_of(rating)
    press(rating, "1")
    rating.goto(f"{live_server.url}/teams/")
    rating.go_back()
    expect(rating.locator("#vote-form input[name=token]")).not_to_have_value(token)


def test_without_scripts_it_is_plain_forms(browser: Any, live_server: Any, one: Rater, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    let_in(context, live_server, one)
    page = context.new_page()
    page.goto(url)
    token = token_of(page)
    page.get_by_text("Tags and comment on A").click()
    page.get_by_label("Comment").first.fill("By hand")
    page.get_by_role("button", name="A is better").click()
    wait_for_next(page, token)
    expect(page.get_by_text("Last pair: A is better")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Comment").first).to_have_value("By hand")
    page.get_by_role("button", name="B is better").click()
    wait_for_next(page, token)
    page.get_by_role("link", name="My votes").click()
    page.get_by_role("link", name="Look or change").click()
    page.get_by_role("button", name="Tie").click()
    current = Vote.objects.current().get(assignment__token=token)
    assert current.choice == "both_good"
    assert Vote.objects.filter(assignment__token=token).count() == 4
    context.close()


def test_on_a_narrow_screen_both_answers_are_opened_before_the_vote(rating: Page) -> None:
    rating.set_viewport_size({"width": 390, "height": 800})
    token = token_of(rating)
    tie = rating.get_by_role("button", name="Tie")
    box = tie.bounding_box()
    assert box is not None
    assert box["height"] >= 48
    rating.get_by_role("button", name="A", exact=True).click()
    tie.click()
    expect(rating.get_by_text("Open both answers first.")).to_be_visible()
    assert not Vote.objects.exists()
    rating.get_by_role("button", name="B", exact=True).click()
    tie.click()
    wait_for_next(rating, token)
    assert Vote.objects.get().choice == "both_good"


def names_of(campaign: Campaign) -> set[str]:
    team = campaign.team
    names: set[str] = set()
    for model in LanguageModel.objects.filter(team=team):
        names |= {model.model_id, model.display_name, model.full_id, model.fingerprint, model.public_id}
    names |= set(Provider.objects.filter(team=team).values_list("name", flat=True))
    names |= set(Candidate.objects.filter(tournament__team=team).values_list("full_id", flat=True))
    matches = CampaignItem.objects.filter(campaign=campaign).values_list("match__public_id", flat=True)
    return {name.lower() for name in [*names, *matches] if len(name) >= 8}


def disguised(names: set[str], text: str) -> set[str]:
    """Names in a text, plain or decoded out of whatever in it is base64, hex or percent-encoded."""
    from urllib.parse import unquote

    parts = [text, unquote(text)]
    for word in set(re.findall(r"[A-Za-z0-9+/_=-]{8,}", text)):
        for decode in (base64.b64decode, base64.urlsafe_b64decode, bytes.fromhex):
            for cut in range(4):
                piece = word[cut:]
                piece += "=" * (-len(piece) % 4) if decode is not bytes.fromhex else ""
                try:
                    parts.append(decode(piece).decode("utf-8", "ignore"))
                except ValueError:
                    continue
    whole = "\n".join(parts).lower()
    return {name for name in names if name in whole}


def sent_by(request: Any) -> str:
    body: bytes = request.post_data_buffer or b""
    return body.decode("utf-8", "replace")


def attach_pdf(campaign: Campaign) -> None:
    content = pdf_bytes(pages=2, text="The terms")
    attachment = Attachment(team=campaign.team, sha256="2" * 64, content_type="application/pdf", size=len(content))
    attachment.pages = 2
    attachment.file.save("attachment", ContentFile(content))
    for sample in Sample.objects.filter(task_set__team=campaign.team):
        SampleAttachment.objects.create(sample=sample, attachment=attachment, path="attachments/terms.pdf")
        reference = {"type": "file_ref", "path": "attachments/terms.pdf"}
        sample.messages = [{"role": "user", "content": [{"type": "text", "text": "What do they say?"}, reference]}]
        sample.save()


def test_nothing_that_reaches_the_browser_names_a_model(
    page: Page, context: Any, live_server: Any, campaign: Campaign, one: Rater, url: str
) -> None:
    attach_pdf(campaign)
    names = names_of(campaign)
    assert any("zyzzogeton" in name for name in names)
    seen: list[str] = []
    page.on("request", lambda request: seen.extend([request.url, str(request.headers), sent_by(request)]))
    page.on("console", lambda line: seen.append(line.text))

    def look(route: Route) -> None:
        response = route.fetch(max_redirects=0)
        seen.extend([str(response.headers), response.body().decode("utf-8", "replace")])
        route.fulfill(response=response)

    # The browser's own viewer of PDFs asks for parts of itself; what comes from the server is looked at.
    page.route(re.compile("^https?:"), look)
    let_in(context, live_server, one)
    page.goto(url)
    for _ in range(3):
        page.wait_for_load_state("load")
        seen.append(page.content())
        seen += [frame.url for frame in page.frames]
        seen.append(page.locator("body").aria_snapshot())
        press(page, "1")
    storage = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, history.state, document.title])"
    seen.append(str(page.evaluate(storage)))
    seen.append(str(context.cookies()))
    assert len(seen) > 40
    assert disguised(names, "\n".join(seen)) == set()
    # The same search finds a name where there is one.
    name = sorted(names)[0]
    hidden = [name, name.encode().hex(), base64.b64encode(b"xy" + name.encode()).decode()]
    assert all(disguised(names, text) == {name} for text in hidden)
    for token in Assignment.objects.values_list("token", flat=True):
        assert re.fullmatch(r"[0-9a-f]{32}", token)


def test_pages_are_kept_by_no_cache_and_the_pdf_is_the_assignments(rating: Page, campaign: Campaign, url: str) -> None:
    attach_pdf(campaign)
    response = rating.goto(url)
    assert response is not None
    assert response.headers["cache-control"] == "no-store, private"
    assert "unsafe" not in response.headers["content-security-policy"]
    frame = rating.locator("iframe[name=pdf-pane]")
    expect(frame).to_be_visible()
    rating.keyboard.press("p")
    expect(frame).to_be_hidden()
    rating.keyboard.press("p")
    source = frame.get_attribute("src")
    assert source is not None
    assert f"/pairs/{token_of(rating)}/files/0/" in source
    rating.get_by_role("link", name="2", exact=True).click()
    expect(frame).to_have_attribute("src", re.compile("page=2"))


def test_a_vote_that_another_tab_edited_is_not_overwritten(rating: Page, one: Rater) -> None:
    token = token_of(rating)
    cast_vote(rater=one, token=token, said=Said(choice="both_bad", key="from-elsewhere"))
    rating.keyboard.press("1")
    expect(rating.get_by_text("This pair has a vote already: Both bad.")).to_be_visible()
    assert Vote.objects.get().choice == "both_bad"
