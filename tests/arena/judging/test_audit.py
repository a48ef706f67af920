from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from arena.ingest import read_samples, starter_path
from arena.judging import audit as pure
from arena.judging.audit import Answer, Ballot, CallSum, Evidence, Match, Model, Verdict, audit
from arena.judging.ballots import reconcile, seat_vote
from arena.judging.panels import may_judge
from arena.judging.protocol import AUDITED
from arena.llm.demo.answers import bank_answer
from arena.llm.demo.catalogue import DEMO_CANDIDATES, DEMO_JUDGES, MODELS_BY_ID
from arena.llm.demo.pairs import Shown, _known
from arena.llm.demo.verdicts import decide
from arena.selectors.audit_words import findings_of


def model(number: int, name: str, **changes: Any) -> Model:
    return Model(
        **{"id": number, "position": number, "full_id": f"x/{name}", "label": name, "model_id": name, **changes}
    )


ADA, BRAM = model(1, "ada", family="lab"), model(2, "bram")
JUDGES = [model(11, "one"), model(12, "two"), model(13, "three")]


def match(number: int, outcome: str = "first", **changes: Any) -> Match:
    conclusive = "decided" if outcome in ("first", "second", "tie") else "inconclusive"
    base = {"id": number, "sample": number, "category": "a", "first": 1, "second": 2, "status": conclusive}
    sizes = changes.pop("characters", (100, 50))
    answers = tuple(
        Answer(trial=10 * number + side, candidate=side + 1, succeeded=True, characters=size, output_tokens=size)
        for side, size in enumerate(sizes)
    )
    return Match(**{**base, "outcome": outcome, "answers": answers, **changes})


def evidence(matches: Sequence[Match], votes: dict[tuple[int, int], str], **changes: Any) -> Evidence:
    """Votes by match and judge: first, second, tie, flip or failed."""
    ballots = []
    for (number, judge), word in votes.items():
        status = {"flip": "abstained", "failed": "failed", "excluded": "excluded"}.get(word, "vote")
        kind = "side" if word == "flip" else ""
        ballots.append(
            Ballot(number, judge, status, word if status == "vote" else "", flipped=word == "flip", flip_kind=kind)
        )
    base: dict[str, Any] = {
        "candidates": [ADA, BRAM],
        "judges": JUDGES,
        "matches": matches,
        "ballots": ballots,
        "verdicts": [],
        "calls": None,
        "seat_orders": 2,
    }
    return Evidence(**{**base, **changes})


def of(found: pure.Audit, label: str) -> pure.JudgeFigures:
    return next(figures for figures in found.judges if figures.judge.label == label)


def test_votes_flips_and_patterns() -> None:
    votes = {
        (1, 11): "first", (1, 12): "first", (1, 13): "flip",
        (2, 11): "first", (2, 12): "second", (2, 13): "failed",
        (3, 11): "tie", (3, 12): "flip", (3, 13): "flip",
    }  # fmt: skip
    matches = [match(1), match(2, "inconclusive"), match(3, "inconclusive", category="b")]
    found = audit(evidence(matches, votes), resamples=0)
    assert [(one.signs, one.matches, one.conclusive) for one in found.patterns] == [
        ("--t", 1, 0),
        ("AA-", 1, 1),
        ("AB!", 1, 0),
    ]
    three = of(found, "three")
    assert three.flips is not None
    assert (three.flips.successes, three.flips.trials, three.failed, three.side_flips) == (2, 2, 1, 2)
    assert three.failures.share == pytest.approx(1 / 3)
    one = of(found, "one")
    assert dict(one.votes) == {"first": 2, "second": 0, "tie": 1}
    assert (one.ties.successes, one.ties.trials) == (1, 3)
    assert [(row.category, row.inconclusive.successes, row.judged) for row in found.categories] == [
        ("a", 1, 2),
        ("b", 1, 1),
    ]
    assert found.totals.coverage == 1.0


def test_what_was_not_recorded_is_none() -> None:
    found = audit(evidence([match(1)], {(1, 11): "first"}), resamples=0)
    one = of(found, "one")
    assert (one.first_seat, one.calls, one.cost_usd, one.median_duration_ms, one.input_tokens) == (None,) * 5
    assert found.totals.judge_cost_usd is None
    single = audit(evidence([match(1)], {(1, 11): "first"}, seat_orders=1), resamples=0)
    # In one order nobody can contradict itself.
    assert of(single, "one").flips is None


def test_an_empty_jury_has_figures_without_values() -> None:
    found = audit(evidence([], {}), resamples=0, with_length_control=True)
    assert found.judged == 0
    assert found.agreement["ties_merged"].alpha.reason == "no_votes"
    assert found.totals.coverage is None
    assert found.length_control is None
    assert findings_of(found) == []


def test_a_seat_counts_only_where_both_orders_were_judged() -> None:
    def said(number: int, winner: str, *, first_in_a: bool, succeeded: bool = True) -> Verdict:
        return Verdict(number, 11, first_in_a, succeeded, winner)

    verdicts = [
        said(1, "A", first_in_a=True), said(1, "A", first_in_a=False),
        said(2, "A", first_in_a=True), said(2, "B", first_in_a=False),
        # Its other call failed: the better answer may have sat first.
        said(3, "A", first_in_a=True), said(3, "", first_in_a=False, succeeded=False),
    ]  # fmt: skip
    found = audit(evidence([match(1), match(2), match(3)], {}, verdicts=verdicts), resamples=0)
    seat = of(found, "one").first_seat
    assert seat is not None
    assert (seat.successes, seat.trials) == (3, 4)


def test_the_longer_answer_beside_the_other_judges() -> None:
    sizes = [(100, 50), (50, 100), (80, 80)]
    matches = [match(number, characters=size) for number, size in enumerate(sizes, 1)]
    votes = {
        (1, 11): "first", (1, 12): "second",
        (2, 11): "second", (2, 12): "second", (2, 13): "tie",
        (3, 11): "first",
    }  # fmt: skip
    longer = of(audit(evidence(matches, votes), resamples=0), "one").longer
    assert (longer.own.successes, longer.own.trials) == (2, 2)
    assert (longer.others.successes, longer.others.trials) == (1, 2)


def test_a_judge_that_plays() -> None:
    judges = [model(11, "ada", family="lab"), JUDGES[1], JUDGES[2]]
    votes = {(n, 11): "first" for n in range(1, 41)} | {(n, 12): "second" for n in range(1, 41)}
    found = audit(evidence([match(n, "second") for n in range(1, 41)], votes, judges=judges), resamples=0)
    own = found.judges[0].own
    assert own is not None
    assert (own.matches, own.votes.own.successes, own.panel_wins, own.stands_out) == (40, 40, 0, True)
    (finding,) = [one for one in findings_of(found) if one.code == "itself"]
    assert "40 of 40" in finding.sentence
    assert finding.query == {"judge": "12", "did": "itself"}


def test_money_is_summed_and_the_unknown_counted() -> None:
    matches = [match(1), match(2)]
    calls = {11: CallSum(4, Decimal("0.5"), 1), 12: CallSum(2, None, 2)}
    found = audit(evidence(matches, {(1, 11): "first"}, calls=calls), resamples=0)
    assert (found.totals.judge_cost_usd, found.totals.judge_calls_of_unknown_cost) == (Decimal("0.5"), 3)
    assert of(found, "three").calls == 0
    assert found.totals.answers_of_unknown_cost == 4


# The demo's judges ------------------------------------------------------------------------------------------
def shown(model_id: str, key: str) -> Shown:
    answer = bank_answer(model_id, key)
    return _known(answer, answer.text)


def demo_evidence() -> Evidence:
    """Every pair of the demo's candidates on every sample without files, judged by its judges in both orders."""
    keys = [draft.key for draft in read_samples(starter_path("demo"), "demo") if not draft.attachment_paths]
    entered = [model(n, name, family=MODELS_BY_ID[name].family) for n, name in enumerate(DEMO_CANDIDATES, 1)]
    panel = [model(n + 100, name, position=n, family=MODELS_BY_ID[name].family) for n, name in enumerate(DEMO_JUDGES)]
    matches, ballots, verdicts = [], [], []
    pairs = list(itertools.combinations(entered, 2))
    for number, key in enumerate(keys * 3):
        one, other = pairs[number % len(pairs)]
        sides = shown(one.model_id, key), shown(other.model_id, key)
        sizes = tuple(len(side.text) for side in sides)
        matches.append(match(number, "first", first=one.id, second=other.id, characters=sizes))
        for judge in panel:
            if not may_judge(judge.model_id, one.model_id, other.model_id):
                ballots.append(Ballot(number, judge.id, "excluded"))
                continue
            said = [decide(judge.model_id, *order) for order in (sides, sides[::-1])]
            seats = [seat_vote(said[0], first_in_seat_a=True), seat_vote(said[1], first_in_seat_a=False)]
            result = reconcile(seats, AUDITED)
            ballots.append(
                Ballot(
                    number,
                    judge.id,
                    result.status.value,
                    result.vote.value if result.vote else "",
                    flipped=result.flipped,
                    flip_kind=result.flip_kind or "",
                )
            )
            verdicts += [
                Verdict(number, judge.id, first_in_a, True, word)
                for first_in_a, word in zip((True, False), said, strict=True)
            ]
    return Evidence(entered, panel, matches, ballots, verdicts, None, 2)


def test_the_audit_names_each_flaw_of_the_demo_and_nothing_else() -> None:
    found = audit(demo_evidence(), resamples=200)
    findings = findings_of(found)
    warned = {(one.judge, one.code) for one in findings if one.kind == "warning" and one.judge}
    assert warned == {
        ("x/usher-2", "first_seat"),
        ("x/usher-2", "flips"),
        ("x/scrivener-4", "longer"),
        ("x/lancer-large", "family"),
    }
    seat = of(found, "usher-2").first_seat
    assert seat is not None
    assert seat.lower is not None
    assert seat.lower > 0.5
    clean = next(one for one in findings if one.code == "clean")
    assert "magistrate-1" in clean.sentence
    left_out = next(one for one in findings if one.code == "left_out")
    assert left_out.judge == "x/lancer-large"
    assert of(found, "lancer-large").excluded > 0
    family = next(one for one in findings if one.code == "family")
    assert "lancer-small" in family.sentence
