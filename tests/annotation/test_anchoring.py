from __future__ import annotations

import itertools

import pytest

from annotation.anchoring import Round, likeness

NAMES = "abcdef"
ROUNDS = [
    Round(number, number % 7, one, other)
    for number, (one, other) in enumerate(itertools.islice(itertools.cycle(itertools.combinations(NAMES, 2)), 60))
]
# The earlier name is better, and now and then not.
TRUTH = {one.match: "second" if one.match % 11 == 0 else "first" for one in ROUNDS}
TURNED = {"first": "second", "second": "first", "tie": "tie"}


def test_who_decides_alike_is_alike_in_every_figure() -> None:
    found = likeness(ROUNDS, {match: [said] for match, said in TRUTH.items()}, TRUTH)
    assert (found.rounds, found.level, found.same.share, found.kappa.value) == (60, 0, 1.0, 1.0)
    assert (found.ranks.n, found.ranks.spearman, found.ranks.kendall) == (6, 1.0, 1.0)
    assert found.places[0].full_id == "a"


def test_who_decides_the_other_way_round_has_the_other_ranking() -> None:
    people = {match: [TURNED[said]] for match, said in TRUTH.items()}
    found = likeness(ROUNDS, people, TRUTH)
    assert found.same.share == 0
    assert found.ranks.spearman == pytest.approx(-1)
    assert found.kappa.value is not None
    assert found.kappa.value < 0


def test_rankings_rest_on_matches_that_both_judged() -> None:
    """The jury's decisions elsewhere change nothing, nor do votes on what it did not decide."""
    shared = {one.match for one in ROUNDS if one.match < 30}
    people = {match: [said] for match, said in TRUTH.items()}
    few = {match: said for match, said in TRUTH.items() if match in shared}
    found = likeness(ROUNDS, people, few)
    alone = likeness([one for one in ROUNDS if one.match in shared], people, few)
    assert found == alone
    assert found.rounds == 30
    # Two of three said the same; a third voice does not move the majority but does move the ranking's evidence.
    assert likeness(ROUNDS, {m: [s, s, "tie"] for m, s in TRUTH.items()}, few).same.share == 1.0


def test_levels_are_left_out_of_the_kappa_alone() -> None:
    people = {match: ["first", "second"] if match < 10 else [said] for match, said in TRUTH.items()}
    found = likeness(ROUNDS, people, TRUTH)
    assert (found.rounds, found.level, found.same.trials, found.kappa.units) == (60, 10, 50, 50)


def test_candidates_of_few_matches_and_of_another_group_are_left_out() -> None:
    rounds = [*ROUNDS, Round(100, 0, "a", "rare"), Round(101, 0, "a", "rare")]
    rounds += [Round(200 + n, n, "x", "y") for n in range(4)]
    said = {one.match: "first" for one in rounds}
    found = likeness(rounds, {match: [one] for match, one in said.items()}, said)
    left_out = {place.full_id: place.left_out for place in found.left_out}
    assert left_out == {"rare": "few", "x": "apart", "y": "apart"}
    assert found.ranks.n == 6


def test_nothing_in_common_has_reasons_and_no_figures() -> None:
    found = likeness(ROUNDS, {}, TRUTH)
    assert (found.rounds, found.kappa.value, found.ranks.n, found.ranks.spearman) == (0, None, 0, None)
    assert found.kappa.reason == "no_votes"
    assert found.same.share is None


def test_one_word_for_everything_is_undefined_and_no_agreement() -> None:
    ties = dict.fromkeys(TRUTH, "tie")
    found = likeness(ROUNDS, {match: ["tie"] for match in TRUTH}, ties)
    assert (found.kappa.value, found.kappa.reason) == (None, "no_variation")
    assert found.ranks.spearman is None


def test_an_unknown_outcome_is_an_error_and_no_tie() -> None:
    with pytest.raises(ValueError, match="both_bad"):
        likeness(ROUNDS, {0: ["both_bad"]}, TRUTH)
