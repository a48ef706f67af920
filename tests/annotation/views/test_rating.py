from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Assignment, Campaign, CampaignItem, GuestInvitation, Rater, Vote
from annotation.services.campaigns import close_campaign, make_gold, reveal_campaign
from annotation.services.raters import create_open_link, invite_guest
from annotation.services.serving import Nothing, next_assignment
from arena.models import Role, Trial
from tests.annotation.world import given, make_team, member, opened, played, rater, vote

pytestmark = pytest.mark.django_db
# session, user, rater with campaign and role, pair, last vote, guidelines, HTML
PAIR_QUERIES = 7


def url(name: str, campaign: Campaign, **kwargs: Any) -> str:
    return reverse(f"annotation:{name}", kwargs={"campaign": campaign.public_id, **kwargs})


def client_of(one: Rater) -> Client:
    client = Client()
    assert one.user is not None
    client.force_login(one.user)
    return client


@pytest.fixture
def campaign() -> Campaign:
    return opened(make_team())


def test_a_member_begins_by_post_and_is_told_what_it_costs(campaign: Campaign) -> None:
    person, client = member(campaign.team), Client()
    client.force_login(person.user)
    welcome = client.get(url("rate", campaign))
    assert b"are kept from you" in welcome.content
    assert not Rater.objects.exists()
    assert client.post(url("rate-join", campaign)).status_code == HTTPStatus.SEE_OTHER
    page = client.get(url("rate", campaign))
    assert page.headers["Cache-Control"] == "no-store, private"
    assert page.context["pair"].token == Assignment.objects.get().token


def test_plain_forms_vote_edit_and_undo(campaign: Campaign) -> None:
    one = rater(campaign)
    client, assignment = client_of(one), given(one)
    data = {"token": assignment.token, "key": "first-key-1", "choice": "left", "left_comment": "good"}
    for _ in range(2):
        assert client.post(url("rate-vote", campaign), data).status_code == HTTPStatus.SEE_OTHER
    assert Vote.objects.count() == 1
    stray = client.post(url("rate-vote", campaign), {**data, "key": "other-key-1", "choice": "right"}, follow=True)
    assert "That vote stands" in stray.content.decode()
    edited = {**data, "key": "edit-key-11", "choice": "both_good", "replaces": "first-key-1"}
    client.post(url("rate-vote", campaign), edited)
    assert Vote.objects.current().get().choice == "both_good"
    client.post(url("rate-undo", campaign), {"token": assignment.token, "key": "undo-key-11"})
    assert Vote.objects.current().get().choice == "undone"
    assert client.get(url("rate", campaign)).context["pair"].token == assignment.token


def test_a_script_hears_what_became_of_its_vote(campaign: Campaign) -> None:
    one = rater(campaign)
    client, assignment = client_of(one), given(one)

    def send(**data: str) -> Any:
        data = {"token": assignment.token, "choice": "left", **data}
        return client.post(url("rate-vote", campaign), data, headers={"X-Requested-With": "rating"})

    assert (send(key="a-key-0001").status_code, send(key="a-key-0001").json()) == (200, {"state": "again"})
    assert send(key="a-key-0002").status_code == HTTPStatus.CONFLICT
    refused = send(key="a-key-0003", choice="skip")
    assert (refused.status_code, refused.json()["state"]) == (HTTPStatus.UNPROCESSABLE_ENTITY, "refused")


def test_what_was_refused_without_scripts_is_shown_again() -> None:
    campaign = opened(make_team(), require_reason_on=["better"])
    one = rater(campaign)
    client, assignment = client_of(one), given(one)
    data = {"token": assignment.token, "key": "first-key-1", "choice": "skip", "right_comment": "typed at length"}
    page = client.post(url("rate-vote", campaign), data, follow=True)
    assert b"Say why you skip" in page.content
    assert b"typed at length" in page.content


def stripped(page: str, texts: list[str]) -> str:
    """A page without what differs from pair to pair: texts, tokens, keys, and the sentence about the pair before."""
    for text in texts:
        page = page.replace(text, "")
    page = re.sub(r'value="[A-Za-z0-9_-]{20,}"', "", page)
    page = re.sub(r'X-CSRFToken": "\w+"', "", page)
    page = re.sub(r'(?s)<div class="rating-last".*?</div>', "", page)
    # Before the first vote there is no such sentence, and an empty line in its place.
    return re.sub(r"\s+", " ", re.sub(r"\d+ answered", "", page))


def test_pages_of_gold_and_repeats_are_the_same_bytes() -> None:
    team = make_team()
    tournament = played(team, matches=30)
    for trial in Trial.objects.filter(team=team):
        Trial.objects.filter(pk=trial.pk).update(answer=f"{trial.pk} says. " + "One more sentence. " * 15)
    campaign = opened(team, tournament, gold_share=0.1, repeat_share=0.1)
    make_gold(campaign=campaign, count=4)
    one = rater(Campaign.objects.get(pk=campaign.pk))
    client = client_of(one)
    pages: dict[str, set[str]] = {}
    for number in range(30):
        response = client.get(url("rate", campaign))
        pair = response.context["pair"]
        texts = [pair.left, pair.right, *(str(block.html) for turn in pair.turns for block in turn.blocks)]
        kind = Assignment.objects.get(token=pair.token).kind
        pages.setdefault(kind, set()).add(stripped(response.content.decode(), sorted(texts, key=len, reverse=True)))
        client.post(url("rate-vote", campaign), {"token": pair.token, "key": f"key-{number:08}", "choice": "left"})
    assert set(pages) == {"normal", "gold", "repeat"}
    assert len(set().union(*pages.values())) == 1


def test_the_sides_of_the_page_are_those_of_the_row(campaign: Campaign) -> None:
    one = rater(campaign)
    client = client_of(one)
    for left in ("first", "second"):
        assignment = given(one)
        right = "second" if left == "first" else "first"
        Assignment.objects.filter(pk=assignment.pk).update(left=left, right=right)
        match = assignment.match
        assert match is not None
        trial = match.first_trial if left == "first" else match.second_trial
        assert trial is not None
        # The answers of this world name their model, so a mask stands in the name's place.
        Trial.objects.filter(pk=trial.pk).update(answer="A text of its own")
        CampaignItem.objects.filter(pk=assignment.item_id).update(first_leaks=[], second_leaks=[])
        pair = client.get(url("rate", campaign)).context["pair"]
        assert "A text of its own" in pair.left
        vote(one, "left", assignment)


def test_names_come_out_when_they_are_revealed_and_not_before(campaign: Campaign) -> None:
    one = rater(campaign)
    client, assignment = client_of(one), given(one)
    vote(one, "left", assignment)
    match = assignment.match
    assert match is not None
    names = [match.first.full_id, match.second.full_id]
    for act in (None, close_campaign):
        if act is not None:
            act(campaign=campaign, actor=None)
        page = client.get(url("rate-votes", campaign)).content.decode()
        assert not any(name in page for name in names)
    reveal_campaign(campaign=campaign, actor=None)
    page = client.get(url("rate-votes", campaign)).content.decode()
    assert all(name in page for name in names)


@pytest.mark.parametrize("role", [Role.MEMBER, Role.RATER, Role.ADMIN])
def test_who_votes_blind_loses_the_tournament_until_the_close(campaign: Campaign, role: Role) -> None:
    tournament = campaign.tournaments.get()
    kwargs = {"team": campaign.team.public_id, "tournament": tournament.public_id}
    addresses = [reverse(name, kwargs=kwargs) for name in ("arena:tournament-detail", "arena:match-list")]
    addresses.append(reverse("ratings:board", kwargs=kwargs))
    one = rater(campaign, role)
    client = client_of(one)
    during = {client.get(address).status_code for address in addresses}
    home = client.get(reverse("arena:team-home", kwargs={"team": campaign.team.public_id})).content.decode()
    close_campaign(campaign=campaign, actor=None)
    after = {client.get(address).status_code for address in addresses}
    expected = {Role.MEMBER: ({404}, {200}), Role.RATER: ({404}, {404}), Role.ADMIN: ({200}, {200})}
    assert (during, after) == expected[role]
    assert (addresses[-1] in home) == (role == Role.ADMIN)


def test_what_is_not_a_raters_is_not_found(campaign: Campaign) -> None:
    one, other = rater(campaign), rater(campaign)
    client, assignment = client_of(one), given(other)
    vote(other, "left", assignment)
    assert client.get(url("rate-pair", campaign, token=assignment.token)).status_code == HTTPStatus.NOT_FOUND
    assert client.get(url("rate-file", campaign, token=assignment.token, number=0)).status_code == HTTPStatus.NOT_FOUND
    assert client.get(url("rate-votes", campaign)).context["rows"] == []
    stranger = Client()
    stranger.force_login(member(make_team()).user)
    assert stranger.get(url("rate", campaign)).status_code == HTTPStatus.NOT_FOUND


def test_an_invitation_is_used_once_by_post_and_opens_one_campaign(campaign: Campaign) -> None:
    other = opened(make_team())
    invitation, token = invite_guest(campaign=campaign, actor=member(campaign.team).user, label="Ana")
    link = reverse("annotation:guest-join", kwargs={"token": token})
    scanner = Client()
    for method in (scanner.get, scanner.head, scanner.get):
        assert method(link).status_code == HTTPStatus.OK
    assert not Rater.objects.exists()
    guest = Client()
    assert guest.post(link)["Location"] == url("rate", campaign)
    assert guest.get(url("rate", campaign)).context["pair"].token
    # The cookie goes to this campaign alone.
    assert guest.get(url("rate", other))["Location"].startswith(reverse("arena:login"))
    guest.cookies["tiltyard-rater"]["path"] = "/"
    assert guest.get(url("rate", other))["Location"].startswith(reverse("arena:login"))
    for method in (scanner.get, scanner.post, guest.post):
        assert method(link).status_code == HTTPStatus.GONE
    assert Rater.objects.count() == 1
    _expired, token = invite_guest(campaign=campaign, actor=member(campaign.team).user, label="Bo")
    GuestInvitation.objects.filter(label="Bo").update(expires_at="2020-01-01T00:00Z")
    assert scanner.post(reverse("annotation:guest-join", kwargs={"token": token})).status_code == HTTPStatus.GONE
    assert invitation.token_hash not in link


def test_an_open_link_keeps_to_its_quotas(campaign: Campaign) -> None:
    actor = member(campaign.team).user
    _link, token = create_open_link(
        campaign=campaign, actor=actor, max_sessions=3, max_sessions_per_network=2, votes_per_session=1
    )
    address = reverse("annotation:open-join", kwargs={"token": token})
    networks = ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
    statuses = [Client(REMOTE_ADDR=network).post(address).status_code for network in networks]
    assert statuses == [303, 303, 410, 303, 410]
    assert Rater.objects.values("network_hash").distinct().count() == 2
    guest = Rater.objects.select_related("campaign", "open_link").order_by("pk")[0]
    vote(guest)
    guest.refresh_from_db()
    assert next_assignment(guest) == Nothing("quota")


def test_a_pair_page_asks_the_database_little(campaign: Campaign, django_assert_max_num_queries: Any) -> None:
    one = rater(campaign)
    client = client_of(one)
    client.get(url("rate", campaign))
    with django_assert_max_num_queries(PAIR_QUERIES):
        client.get(url("rate", campaign))
