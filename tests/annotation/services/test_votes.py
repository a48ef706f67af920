from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from annotation.models import Assignment, Campaign, CampaignItem, Rater, Vote
from annotation.services.campaigns import close_campaign
from annotation.services.votes import Remarks, cast_vote, report_leak, save_draft, undo_vote
from arena.models import Role
from arena.services.members import Refused
from tests.annotation.world import given, make_team, opened, rater, said, vote, votes_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign() -> Campaign:
    return opened(make_team())


@pytest.fixture
def one(campaign: Campaign) -> Rater:
    return rater(campaign)


@pytest.mark.parametrize(
    ("choice", "left", "outcome"),
    [
        ("left", "first", "first"),
        ("left", "second", "second"),
        ("right", "first", "second"),
        ("right", "second", "first"),
        ("both_good", "second", "tie"),
        ("both_bad", "first", "tie"),
    ],
)
def test_a_side_means_what_stood_there(one: Rater, choice: str, left: str, outcome: str) -> None:
    assignment = given(one)
    right = {"first": "second", "second": "first"}[left]
    Assignment.objects.filter(pk=assignment.pk).update(left=left, right=right)
    cast_vote(
        rater=one,
        token=assignment.token,
        said=said(choice, left=Remarks(tags=["wrong", "unknown"], comment="L"), right=Remarks(comment=" R ")),
    )
    stored = Vote.objects.get()
    assert (stored.outcome, stored.choice, stored.standing, stored.place) == (outcome, choice, "counted", 1)
    comments = {"first": stored.first_comment, "second": stored.second_comment}
    assert (comments[left], comments[right]) == ("L", "R")
    assert {"first": stored.first_tags, "second": stored.second_tags}[left] == ["wrong"]


def test_the_same_request_again_adds_no_row_whatever_it_says(one: Rater) -> None:
    assignment = given(one)
    first = said("left")
    assert cast_vote(rater=one, token=assignment.token, said=first).how == "new"
    for choice in ("left", "right"):
        again = cast_vote(rater=one, token=assignment.token, said=said(choice, key=first.key))
        assert (again.how, again.vote.choice) == ("again", "left")
    assert Vote.objects.count() == 1


def test_another_key_on_a_pair_that_has_a_vote_changes_nothing(one: Rater) -> None:
    assignment = given(one)
    vote(one, "left", assignment)
    kept = vote(one, "right", assignment)
    assert (kept.how, kept.vote.choice) == ("kept", "left")
    assert Vote.objects.count() == 1


def test_an_edit_names_the_vote_that_it_replaces(campaign: Campaign, one: Rater) -> None:
    assignment = given(one)
    first = vote(one, "left", assignment).vote
    second = vote(one, "both_good", assignment, replaces=first.idempotency_key).vote
    assert (second.supersedes, second.place, second.outcome) == (first, first.place, "tie")
    assert [(v.choice, v.is_current) for v in votes_of(campaign)] == [("left", False), ("both_good", True)]
    # Naming one that is superseded itself is a stray vote.
    assert vote(one, "right", assignment, replaces=first.idempotency_key).how == "kept"
    assert CampaignItem.objects.get(pk=assignment.item_id).counted == 1
    one.refresh_from_db()
    assert one.answered == 1


def test_an_undo_opens_the_pair_again_with_what_was_typed(one: Rater) -> None:
    assignment = given(one)
    cast_vote(rater=one, token=assignment.token, said=said(left=Remarks(tags=["tone"], comment="curt")))
    after = given(one)
    assert after.pk != assignment.pk
    for _ in range(2):
        undo_vote(rater=one, token=assignment.token, key="undo-key-1")
    assert Vote.objects.count() == 2
    back = given(one)
    assert back.pk == assignment.pk
    assert back.draft == {"left_tags": ["tone"], "left_comment": "curt", "right_tags": [], "right_comment": ""}
    item = CampaignItem.objects.get(pk=assignment.item_id)
    assert (item.counted, item.pending) == (0, 1)
    again = vote(one, "right", assignment)
    assert (again.how, again.vote.place) == ("new", 1)
    assert given(one).pk == after.pk


def test_a_skip_is_a_row_with_a_reason_and_never_a_tie(one: Rater) -> None:
    assignment = given(one)
    with pytest.raises(Refused, match="Say why"):
        vote(one, "skip", assignment)
    stored = vote(one, "skip", assignment, reason="not_my_field", note="law").vote
    assert (stored.outcome, stored.standing, stored.place, stored.note) == ("", "no_choice", None, "law")
    assert given(one).pk != assignment.pk


def test_a_reason_is_asked_for_where_the_campaign_says_so() -> None:
    one = rater(opened(make_team(), require_reason_on=["tie"], allow_both_bad=False))
    with pytest.raises(Refused, match="reason"):
        vote(one, "both_good")
    with pytest.raises(Refused, match="buttons"):
        vote(one, "both_bad")
    assert vote(one, "both_good", right=Remarks(tags=["format"])).how == "new"
    assert vote(one, "left").how == "new"


@pytest.mark.parametrize("choice", ["", "first", "undone", "tie"])
def test_what_no_button_says_is_refused(one: Rater, choice: str) -> None:
    with pytest.raises(Refused):
        vote(one, choice)
    assert not Vote.objects.exists()


def test_a_foreign_token_opens_nothing(campaign: Campaign, one: Rater) -> None:
    foreign = given(rater(campaign))
    with pytest.raises(Refused, match="not yours"):
        vote(one, "left", foreign)
    with pytest.raises(Refused, match="not yours"):
        undo_vote(rater=one, token=foreign.token, key="some-key-1")


def test_a_surplus_vote_is_kept_and_marked_and_a_lease_is_soft() -> None:
    campaign = opened(make_team(), raters_per_pair=1)
    slow, quick = rater(campaign), rater(campaign)
    assignment = given(slow)
    Assignment.objects.update(lease_until="2020-01-01T00:00Z")
    taken = given(quick)
    # Whichever it was given, the quick one votes on the slow one's match too.
    Assignment.objects.filter(pk=taken.pk).update(match=assignment.match, item=assignment.item)
    vote(quick, "left", taken)
    surplus = vote(slow, "right", assignment).vote
    assert (surplus.standing, surplus.place, surplus.outcome != "") == ("over_quota", None, True)
    assert Vote.objects.counted().count() == 1
    assert CampaignItem.objects.get(pk=assignment.item_id).counted == 1


@pytest.mark.parametrize(("counts", "standing"), [(False, "could_see_names"), (True, "counted")])
def test_votes_of_those_who_can_see_names_are_marked(*, counts: bool, standing: str) -> None:
    admin = rater(opened(make_team(), counts_unblinded=counts), Role.ADMIN)
    stored = vote(admin).vote
    assert (stored.could_see_names, stored.standing) == (True, standing)


def test_nothing_is_stored_after_the_close(campaign: Campaign, one: Rater) -> None:
    assignment = given(one)
    first = vote(one, "left", assignment).vote
    open_one = given(one)
    close_campaign(campaign=campaign, actor=None)
    for action in (
        lambda: vote(one, "left", open_one),
        lambda: vote(one, "right", assignment, replaces=first.idempotency_key),
        lambda: undo_vote(rater=one, token=assignment.token, key="undo-key-2"),
    ):
        with pytest.raises(Refused, match="closed"):
            action()
    assert Vote.objects.count() == 1


def test_a_vote_whose_names_were_shown_stands() -> None:
    one = rater(opened(make_team(), reveal="after_vote"))
    assignment = given(one)
    first = vote(one, "left", assignment).vote
    with pytest.raises(Refused, match="names"):
        undo_vote(rater=one, token=assignment.token, key="undo-key-3")
    with pytest.raises(Refused, match="names"):
        vote(one, "right", assignment, replaces=first.idempotency_key)


def test_drafts_and_reports_are_the_raters_own(campaign: Campaign, one: Rater) -> None:
    assignment, other = given(one), rater(campaign)
    for who, comment in ((one, "mine"), (other, "theirs")):
        save_draft(rater=who, token=assignment.token, left=Remarks(comment=comment), right=Remarks())
        report_leak(rater=who, token=assignment.token, note=comment)
    assignment.refresh_from_db()
    assert (assignment.draft["left_comment"], assignment.leak_note) == ("mine", "mine")
    vote(one, "left", assignment)
    save_draft(rater=one, token=assignment.token, left=Remarks(comment="late"), right=Remarks())
    assignment.refresh_from_db()
    assert assignment.draft == {}


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "tie"},
        {"place": None},
        {"place": 4},
        {"standing": "over_quota"},
        {"idempotency_key": ""},
        {"reason": "other"},
    ],
)
def test_the_database_holds_what_a_vote_is(one: Rater, change: dict[str, object]) -> None:
    stored = vote(one).vote
    with pytest.raises(IntegrityError), transaction.atomic():
        Vote.objects.filter(pk=stored.pk).update(**change)


def test_the_database_holds_one_current_vote_and_one_of_a_place(campaign: Campaign, one: Rater) -> None:
    stored = vote(one).vote
    fields = {f.attname: getattr(stored, f.attname) for f in Vote._meta.concrete_fields if f.attname != "id"}
    with pytest.raises(IntegrityError), transaction.atomic():
        Vote.objects.create(**{**fields, "idempotency_key": "another-key", "standing": "over_quota", "place": None})
    with pytest.raises(IntegrityError), transaction.atomic():
        Vote.objects.create(**{**fields, "is_current": False})
    # The same place by another rater's assignment.
    other = given(rater(campaign))
    with pytest.raises(IntegrityError), transaction.atomic():
        Vote.objects.create(**{**fields, "assignment_id": other.pk, "rater_id": other.rater_id})
