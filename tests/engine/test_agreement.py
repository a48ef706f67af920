from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ratings.engine.agreement import (
    CATEGORIES,
    MISSING,
    Agreement,
    Votes,
    against_others,
    agreement,
    by_coding,
    cohen,
    landis_koch,
    rank_agreement,
    wilson,
)
from tests.engine.helpers import shared_file, shared_json

tables = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.integers(MISSING, 2), min_size=raters, max_size=raters), min_size=1, max_size=12
    )
)


def published() -> dict[str, Any]:
    found: dict[str, Any] = shared_json("reference/agreement.json")
    return found


def of_counts(counts: list[list[int]]) -> Votes:
    """Any raters that give these counts per unit."""
    return Votes(np.array([np.repeat(np.arange(len(row)), row) for row in counts]), len(counts[0]))


def test_krippendorffs_example() -> None:
    found = published()["krippendorff_example"]
    table = [[MISSING if code is None else code - 1 for code in row] for row in found["ratings_by_rater"]]
    result = agreement(Votes(np.array(table).T, 5))

    assert result.alpha.value == pytest.approx(found["alpha_nominal"], abs=5e-6)
    assert result.ac1.value == pytest.approx(found["gwet_ac1"], abs=5e-6)
    assert result.fleiss_gaps.value == pytest.approx(found["fleiss_gaps_allowed"], abs=5e-6)
    assert result.raw.value == pytest.approx(found["raw"], abs=5e-6)
    assert (result.units, result.raw.units) == (12, 11)
    assert result.alpha.lower is not None
    assert result.alpha.upper is not None
    assert result.alpha.lower < found["alpha_nominal"] < result.alpha.upper


def test_fleiss_classic_example() -> None:
    found = published()["fleiss_classic"]
    result = agreement(of_counts(found["counts"]), resamples=0)

    assert result.fleiss.value == pytest.approx(found["kappa"], abs=5e-4)
    assert result.fleiss_gaps.value == pytest.approx(result.fleiss.value)
    assert result.fleiss.label == "fair"


def test_cohen_of_a_table() -> None:
    found = published()["cohen_2x2"]
    cells = [(i, j) for i, j in itertools.product(range(2), range(2)) for _ in range(found["table"][i][j])]
    one, other = np.array(cells).T

    assert cohen(one, other, 2).value == pytest.approx(found["kappa"], abs=1e-12)
    assert cohen(other, one, 2).value == pytest.approx(found["kappa"], abs=1e-12)


def test_skewed_votes() -> None:
    found = published()["skewed"]
    result = agreement(of_counts([[3, 0, 0]] * 94 + [[2, 1, 0]] * 6), resamples=0)

    assert result.raw.value == pytest.approx(found["raw"], abs=1e-12)
    assert result.alpha.value == pytest.approx(found["alpha"], abs=5e-4)
    assert result.ac1.value == pytest.approx(found["gwet_ac1"], abs=5e-4)
    assert result.alpha.label == "poor"
    assert result.ac1.label == "almost perfect"


def test_no_variation_is_undefined_and_says_so() -> None:
    result = agreement(of_counts([[3, 0, 0]] * 20))

    for undefined in (result.alpha, result.fleiss, result.fleiss_gaps, *result.cohen.values()):
        assert undefined.value is None
        assert undefined.reason == "no_variation"
        assert undefined.no_interval == "undefined"
        assert undefined.label is None
    assert published()["no_variation"]["alpha"] == "undefined: no variation"
    assert result.ac1.value == published()["no_variation"]["gwet_ac1"]
    assert result.raw.value == 1.0


def test_words_of_landis_and_koch() -> None:
    for bound, word in published()["landis_koch"]:
        if bound == 0.0:
            assert landis_koch(-0.001) == word.removesuffix(" below")
            assert landis_koch(0.0) == "slight"
        else:
            assert landis_koch(bound) == landis_koch(bound - 0.1) == word
    with pytest.raises(ValueError, match="at most 1"):
        landis_koch(1.1)
    with pytest.raises(ValueError, match="at most 1"):
        landis_koch(math.nan)


def jury_votes() -> tuple[list[tuple[int, str, str]], dict[int, str]]:
    """Votes of the published log's judges; those who abstained have none."""
    rounds = [json.loads(line) for line in shared_file("data/orq_quickstart/battles.jsonl").read_text().splitlines()]
    labels = {"A": "first", "B": "second", "tie": "tie"}
    rows = [
        (number, vote["model"], labels[vote["vote"]])
        for number, one in enumerate(rounds)
        for vote in one["judge_votes"]
        if vote["vote"] in labels
    ]
    return rows, {number: one["prompt_hash"] for number, one in enumerate(rounds)}


def test_published_agreement_of_a_jury() -> None:
    found = shared_json("reference/orq_quickstart.json")
    rows, samples = jury_votes()
    result = agreement(Votes.from_rows(rows, "ties_merged", samples), resamples=200)

    assert result.modal_share.value == pytest.approx(found["mean_modal_share"], abs=1e-12)
    assert result.fleiss.value == pytest.approx(found["fleiss"]["kappa"], abs=5e-4)
    assert (result.fleiss.label, result.fleiss.units) == (found["fleiss"]["label"], found["fleiss"]["rounds_used"])
    pairs = {
        " | ".join(sorted(str(judge).split("/")[1] for judge in pair)): kappa for pair, kappa in result.cohen.items()
    }
    assert pairs.keys() == found["cohen"].keys()
    for names, expected in found["cohen"].items():
        assert pairs[names].value == pytest.approx(expected["kappa"], abs=5e-4)
        assert (pairs[names].label, pairs[names].units) == (expected["label"], expected["rounds"])
        assert pairs[names].lower is not None
    # Two judges can share a round that is no tie for both, and one prompt feeds several rounds.
    assert len(set(samples.values())) == found["distinct_prompts"]


def test_codings() -> None:
    rows = [
        (1, "a", "first"), (1, "b", "both_good"), (1, "c", "both_bad"),
        (2, "a", "tie"), (2, "b", "both_good"), (2, "c", "both_bad"),
        (3, "a", "second"), (3, "b", "second"), (3, "c", "first"),
    ]  # fmt: skip
    found = by_coding(rows, resamples=0)
    tables = {coding: Votes.from_rows(rows, coding).codes.tolist() for coding in CATEGORIES}

    assert tables["four_way"] == [[0, 2, 3], [2, 2, 3], [1, 1, 0]]
    assert tables["ties_merged"] == [[0, 2, 2], [2, 2, 2], [1, 1, 0]]
    assert tables["decisive"] == [[0, MISSING, MISSING], [MISSING] * 3, [1, 1, 0]]
    assert [found[coding].raw.value for coding in CATEGORIES] == pytest.approx([2 / 9, 5 / 9, 1 / 3])
    assert [found[coding].votes for coding in CATEGORIES] == [9, 9, 4]
    assert [found[coding].modal_share.units for coding in CATEGORIES] == [3, 3, 1]


def test_ac1_takes_the_categories_of_the_coding_not_those_used() -> None:
    codes = np.array([[0, 0], [0, 1], [1, 1]])
    values = [agreement(Votes(codes, q), resamples=0).ac1.value for q in (2, 3, 4)]

    assert values == pytest.approx([(2 / 3 - pe) / (1 - pe) for pe in (1 / 2, 1 / 4, 1 / 6)])


def test_swapped_seats_agree_when_the_same_model_is_preferred() -> None:
    # Both prefer the same model; one saw it on the left, one on the right. Rows are coded by model.
    rows = [(unit, rater, "first" if unit % 2 else "second") for unit in range(6) for rater in ("saw AB", "saw BA")]

    assert agreement(Votes.from_rows(rows, "ties_merged"), resamples=0).alpha.value == 1.0


def literal(votes: Votes) -> dict[str, float | None]:
    """The statistics from their definitions, vote by vote."""
    units = [[code for code in row if code != MISSING] for row in votes.codes.tolist()]
    two = [unit for unit in units if len(unit) >= 2]
    result: dict[str, float | None] = dict.fromkeys(("modal_share", "raw", "alpha", "fleiss_gaps", "ac1"))
    if not two:
        return result
    result["modal_share"] = sum(max(Counter(unit).values()) / len(unit) for unit in two) / len(two)
    agreeing = [sum(a == b for a, b in itertools.permutations(unit, 2)) / (len(unit) * (len(unit) - 1)) for unit in two]
    raw = result["raw"] = sum(agreeing) / len(agreeing)
    one = [unit for unit in units if unit]
    shares = [sum(unit.count(k) / len(unit) for unit in one) / len(one) for k in range(votes.n_categories)]
    by_chance = sum(share**2 for share in shares)
    result["fleiss_gaps"] = None if max(shares) > 1 - 1e-12 else (raw - by_chance) / (1 - by_chance)
    gwet = sum(share * (1 - share) for share in shares) / (votes.n_categories - 1)
    result["ac1"] = (raw - gwet) / (1 - gwet)
    coincidences = Counter[tuple[int, int]]()
    for unit in two:
        for a, b in itertools.permutations(unit, 2):
            coincidences[a, b] += 1 / (len(unit) - 1)  # type: ignore[assignment]
    total = sum(coincidences.values())
    margin = [sum(n for (a, _), n in coincidences.items() if a == k) for k in range(votes.n_categories)]
    expected = sum(a * b for i, a in enumerate(margin) for j, b in enumerate(margin) if i != j) / (total - 1)
    observed = sum(n for (a, b), n in coincidences.items() if a != b)
    result["alpha"] = None if expected < 1e-12 else 1 - observed / expected
    return result


@settings(max_examples=80, deadline=None)
@given(tables)
def test_statistics_are_their_definitions(table: list[list[int]]) -> None:
    votes = Votes(np.array(table), 3)
    result = agreement(votes, resamples=0)

    for name, expected in literal(votes).items():
        found = getattr(result, name)
        assert found.value == (None if expected is None else pytest.approx(expected, abs=1e-9)), name
        assert (found.reason is None) == (found.value is not None)
        assert found.value is None or found.value <= 1


def values(result: Agreement) -> list[float | None]:
    found = (result.modal_share, result.raw, result.fleiss, result.fleiss_gaps, result.alpha, result.ac1)
    return [None if one.value is None else round(one.value, 9) for one in found]


@settings(max_examples=30, deadline=None)
@given(table=tables, names=st.permutations(range(3)), random=st.randoms())
def test_names_and_orders_do_not_matter(table: list[list[int]], names: list[int], random: Any) -> None:
    codes = np.array(table)
    renamed = np.where(codes == MISSING, MISSING, np.array([*names, MISSING])[codes])
    raters = random.sample(range(codes.shape[1]), codes.shape[1])
    units = random.sample(range(codes.shape[0]), codes.shape[0])

    expected = values(agreement(Votes(codes, 3), resamples=0))
    assert values(agreement(Votes(renamed, 3), resamples=0)) == expected
    assert values(agreement(Votes(codes[units][:, raters], 3), resamples=0)) == expected


def test_intervals_come_from_samples_not_from_units() -> None:
    rng = np.random.default_rng(2)
    one = rng.integers(0, 2, 40)
    other = np.where(rng.random(40) < 0.8, one, 1 - one)
    codes = np.stack([one, other], axis=1)
    alone = agreement(Votes(codes, 2), seed=3)
    # The same rounds five times over, as five rounds of one sample each: no more information.
    repeated = agreement(Votes(np.repeat(codes, 5, axis=0), 2, np.repeat(np.arange(40), 5)), seed=3)
    as_if_independent = agreement(Votes(np.repeat(codes, 5, axis=0), 2), seed=3)

    def width(found: Agreement) -> float:
        kappa = found.cohen[0, 1]
        assert kappa.lower is not None
        assert kappa.upper is not None
        return kappa.upper - kappa.lower

    assert width(repeated) == pytest.approx(width(alone), abs=1e-9)
    assert width(as_if_independent) < 0.6 * width(alone)
    assert agreement(Votes(codes, 2), seed=3).cohen == alone.cohen
    assert agreement(Votes(codes, 2), seed=4).cohen != alone.cohen


def test_one_sample_has_no_interval() -> None:
    found = agreement(Votes(np.array([[0, 0], [1, 1], [0, 1]]), 2, np.zeros(3, dtype=np.int64))).alpha

    assert found.value is not None
    assert (found.lower, found.upper, found.no_interval) == (None, None, "one_sample")


def test_many_undefined_resamples_leave_no_interval() -> None:
    # One unit of ten holds all the variation, and a third of the resamples miss it.
    found = agreement(Votes(np.array([[0, 0]] * 9 + [[1, 1]]), 2)).alpha

    assert found.value == 1.0
    assert found.no_interval == "many_undefined_resamples"
    assert found.undefined_resamples / found.resamples == pytest.approx(0.9**10, abs=0.05)
    assert found.lower is None


def test_no_intervals_when_none_are_asked_for() -> None:
    found = agreement(Votes(np.array([[0, 0], [1, 1], [0, 1]]), 2), resamples=0).alpha

    assert (found.lower, found.no_interval, found.resamples) == (None, None, 0)


def test_no_votes() -> None:
    for votes in (Votes.from_rows([], "four_way"), Votes(np.full((3, 2), MISSING), 3)):
        result = agreement(votes)

        assert result.votes == 0
        for found in (result.modal_share, result.raw, result.fleiss, result.alpha, result.ac1):
            assert (found.value, found.reason) == (None, "no_votes")


def test_one_rater() -> None:
    result = agreement(Votes(np.array([[0], [1], [1]]), 2))

    for found in (result.modal_share, result.raw, result.fleiss_gaps, result.alpha, result.ac1):
        assert (found.value, found.reason, found.units) == (None, "no_shared_units", 0)
    assert (result.fleiss.value, result.fleiss.reason) == (None, "no_complete_units")
    assert result.cohen == {}


def test_raters_who_share_nothing() -> None:
    result = agreement(Votes(np.array([[0, MISSING, 0], [MISSING, 1, 1]]), 2))

    assert (result.cohen[0, 1].value, result.cohen[0, 1].reason) == (None, "no_shared_units")
    assert (result.fleiss.value, result.fleiss.reason) == (None, "no_complete_units")
    assert result.alpha.value == 1.0


def test_raters_who_each_say_one_thing_disagree_by_chance_alone() -> None:
    assert cohen([0, 0, 0], [1, 1, 1], 2).value == 0.0


def test_against_the_majority_of_the_others() -> None:
    codes = np.array([[0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1], [0, 1, MISSING, MISSING]])
    found = against_others(Votes(codes, 2, raters=("a", "b", "c", "d")), resamples=0)

    assert found["a"].value == pytest.approx(cohen([0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 1, 1], 2).value)
    assert found["d"].units == 5
    assert found["d"].value is not None
    assert found["d"].value < 0


@pytest.mark.parametrize(
    ("rows", "coding", "message"),
    [
        ([(1, "a", "left")], "four_way", "Unknown label 'left'"),
        ([(1, "a", "first"), (1, "a", "first")], "four_way", "two votes on unit 1"),
        ([], "five_way", "Unknown coding"),
    ],
)
def test_bad_rows_are_refused(rows: list[tuple[int, str, str]], coding: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Votes.from_rows(rows, coding)


def test_bad_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="table of integers"):
        Votes(np.array([0, 1]), 2)
    with pytest.raises(ValueError, match="table of integers"):
        Votes(np.array([[0.5]]), 2)
    with pytest.raises(ValueError, match="between -1 and 1"):
        Votes(np.array([[2]]), 2)
    with pytest.raises(ValueError, match="two categories"):
        Votes(np.array([[0]]), 1)
    with pytest.raises(ValueError, match="cluster"):
        Votes(np.array([[0]]), 2, np.array([0, 1]))
    with pytest.raises(ValueError, match="raters named"):
        Votes(np.array([[0]]), 2, raters=("a", "b"))
    with pytest.raises(ValueError, match="resamples"):
        agreement(Votes(np.array([[0]]), 2), resamples=-1)
    with pytest.raises(KeyError):
        Votes.from_rows([(1, "a", "first")], "decisive", {2: "sample"})


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_correlations_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy import stats

    one, other = np.array(pairs, dtype=np.float64).T
    assume(len(set(one)) > 1 and len(set(other)) > 1)
    found = rank_agreement(one, other)

    assert found.n == len(pairs)
    assert found.spearman == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)
    assert found.kendall == pytest.approx(stats.kendalltau(one, other).statistic, abs=1e-12)


def test_a_correlation_of_few_has_no_word() -> None:
    four, five = np.arange(4), np.arange(5)

    assert (rank_agreement(four, four).spearman, rank_agreement(four, four).verdict) == (1.0, None)
    assert rank_agreement(five, five).verdict == "very_high"
    assert rank_agreement(five, -five).verdict == "low"
    assert rank_agreement(five, [1, 0, 2, 4, 3]).verdict == "high"
    assert rank_agreement(five, [2, 0, 1, 4, 3]).verdict == "moderate"


def test_correlations_without_an_order_are_undefined() -> None:
    for one, other in (([], []), ([1.0], [2.0]), ([1.0, 1.0], [1.0, 2.0]), ([math.nan, 1.0], [1.0, 2.0])):
        found = rank_agreement(one, other)
        assert (found.spearman, found.kendall, found.verdict) == (None, None, None)
    with pytest.raises(ValueError, match="equal length"):
        rank_agreement([1.0], [1.0, 2.0])


def test_open_ends_are_ranks_too() -> None:
    found = rank_agreement([math.inf, 3.0, 1.0, math.nan], [9.0, 2.0, -math.inf, 5.0])

    assert (found.n, found.spearman, found.kendall) == (3, 1.0, 1.0)


def test_wilson_intervals() -> None:
    found = wilson(59, 74)
    share, n, z = 59 / 74, 74, 1.959963984540054

    # The limits are where the score test just rejects.
    for limit in (found.lower, found.upper):
        assert limit is not None
        assert abs(share - limit) == pytest.approx(z * math.sqrt(limit * (1 - limit) / n))
    assert (wilson(0, 5).lower, wilson(5, 5).upper) == (0.0, 1.0)
    assert wilson(0, 0).share is wilson(0, 0).lower is wilson(0, 0).upper is None
    for successes, trials in ((-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="trials"):
            wilson(successes, trials)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share(counts: tuple[int, int]) -> None:
    found, other = wilson(*counts), wilson(counts[1] - counts[0], counts[1])

    assert found.lower is not None
    assert found.upper is not None
    assert found.share is not None
    assert other.upper is not None
    assert 0 <= found.lower <= found.share <= found.upper <= 1
    assert found.lower == pytest.approx(1 - other.upper, abs=1e-12)
