"""The figures of an audit as tables of plain values: what CSV and JSON hold, and what commands print."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from arena.judging.audit import Audit, JudgeFigures, Preference
from arena.models import Jury, Tournament
from arena.selectors.audit_words import findings_of
from ratings.engine.agreement import Estimate, Wilson
from ratings.engine.scale import to_display

FORMAT = "tiltyard.audit"
SCHEMA_VERSION = 1
Row = dict[str, Any]


def document(tournament: Tournament, jury: Jury, audit: Audit) -> Row:
    """Everything, with the sentences on top. Null is unknown, never nought."""
    imported = tournament.settings.get("imported")
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "tournament_id": tournament.public_id,
        "tournament": tournament.name,
        "jury_id": jury.public_id,
        "primary": jury.primary,
        "findings": [
            {"code": one.code, "kind": one.kind, "judge": one.judge or None, "sentence": one.sentence}
            for one in findings_of(audit, imported)
        ],
        **{name: make(audit) for name, make in TABLES.items()},
        "longer_answer": _longer(audit),
        "length_control": _length_control(audit),
        "seats": _seats(audit),
        "imported": imported,
    }


def _share(name: str, share: Wilson | None) -> Row:
    if share is None:
        share = Wilson(0, 0, None, None, None)
    return {
        name: share.share,
        f"{name}_lower": share.lower,
        f"{name}_upper": share.upper,
        f"{name}_count": share.successes,
        f"{name}_of": share.trials,
    }


def _preference(name: str, preference: Preference) -> Row:
    return {**_share(name, preference.own), f"{name}_others": preference.others.share}


def _money(value: Decimal | None) -> str | None:
    """As text: dollars are decimal, and a binary fraction would not be what was booked."""
    return None if value is None else format(value, "f")


def judges(audit: Audit) -> list[Row]:
    return [_judge(figures) for figures in audit.judges]


def _judge(figures: JudgeFigures) -> Row:
    own = figures.own
    nobody = Wilson(0, 0, None, None, None)
    return {
        "judge": figures.judge.full_id,
        "label": figures.judge.label,
        "replacement": figures.judge.replacement,
        "calls": figures.calls,
        "ballots": figures.ballots,
        "votes_first": figures.votes["first"],
        "votes_second": figures.votes["second"],
        "votes_tie": figures.votes["tie"],
        "abstained": figures.abstained,
        "failed": figures.failed,
        "left_out_as_contestant": figures.excluded,
        "left_out_for_files": figures.input_skipped,
        **_share("flip_rate", figures.flips),
        "flips_between_sides": figures.side_flips,
        "flips_with_a_tie": figures.tie_flips,
        **_share("tie_rate", figures.ties),
        **_share("first_candidate_share", figures.first_candidate),
        **_share("first_seat_share", figures.first_seat),
        "first_seat_ties": figures.seat_ties,
        **_preference("longer_answer_share", figures.longer),
        "own_matches": own.matches if own else 0,
        **_share("own_share", own.votes.own if own else nobody),
        "own_share_others": own.votes.others.share if own else None,
        "own_matches_won_by_panel": own.panel_wins if own else None,
        **_preference("family_share", figures.kin),
        "input_tokens": figures.input_tokens,
        "output_tokens": figures.output_tokens,
        "cost_usd": _money(figures.cost_usd),
        "calls_of_unknown_cost": figures.calls_of_unknown_cost,
        "median_duration_ms": figures.median_duration_ms,
    }


def errors(audit: Audit) -> list[Row]:
    return [
        {"judge": figures.judge.full_id, "error_code": code, "verdicts": count}
        for figures in audit.judges
        for code, count in sorted(figures.errors.items())
    ]


def agreement(audit: Audit) -> list[Row]:
    names = ("modal_share", "raw", "fleiss", "fleiss_gaps", "alpha", "ac1")
    return [
        {"coding": coding, "statistic": name, **_estimate(getattr(found, name)), "judged_matches": audit.judged}
        for coding, found in audit.agreement.items()
        for name in names
    ]


def pairs(audit: Audit) -> list[Row]:
    names = {figures.judge.id: figures.judge.full_id for figures in audit.judges}
    return [
        {"coding": coding, "judge": names[one], "other": names[other], **_estimate(estimate)}  # type: ignore[index]
        for coding, found in audit.agreement.items()
        for (one, other), estimate in found.cohen.items()
    ]


def _estimate(estimate: Estimate) -> Row:
    return {
        "value": estimate.value,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "label": estimate.label,
        "reason": estimate.reason or estimate.no_interval,
        "matches": estimate.units,
    }


def patterns(audit: Audit) -> list[Row]:
    return [
        {"votes": pattern.signs, "matches": pattern.matches, "with_a_result": pattern.conclusive}
        for pattern in audit.patterns
    ]


def categories(audit: Audit) -> list[Row]:
    return [
        {"category": one.category, "judged": one.judged, **_share("inconclusive", one.inconclusive)}
        for one in audit.categories
    ]


def candidates(audit: Audit) -> list[Row]:
    return [
        {
            "candidate": one.candidate.full_id,
            "label": one.candidate.label,
            "participated": one.participated,
            "completed": one.completed,
            "coverage": one.coverage,
            "answers": one.answers,
            "truncated": one.truncated,
            "mean_output_tokens": one.mean_output_tokens,
            "cost_usd": _money(one.cost_usd),
            "answers_of_unknown_cost": one.answers_of_unknown_cost,
        }
        for one in audit.candidates
    ]


def totals(audit: Audit) -> list[Row]:
    found = audit.totals
    return [
        {
            "matches": found.planned,
            "decided": found.decided,
            "inconclusive": found.inconclusive,
            "void": found.void,
            "forced_ties": found.forced_ties,
            "coverage": found.coverage,
            "samples": found.samples,
            **{f"outcome_{name}": found.outcomes.get(name, 0) for name in ("first", "second", "tie")},
            "answers": found.answers,
            "truncated": found.truncated,
            "answer_input_tokens": found.answer_input_tokens,
            "answer_output_tokens": found.answer_output_tokens,
            "answer_cost_usd": _money(found.answer_cost_usd),
            "answers_of_unknown_cost": found.answers_of_unknown_cost,
            "judge_input_tokens": found.judge_input_tokens,
            "judge_output_tokens": found.judge_output_tokens,
            "judge_cost_usd": _money(found.judge_cost_usd),
            "judge_calls_of_unknown_cost": found.judge_calls_of_unknown_cost,
            "judge_cost_at_mean_price": found.judge_cost_at_mean_price,
        }
    ]


TABLES: Mapping[str, Callable[[Audit], Sequence[Row]]] = {
    "totals": totals,
    "judges": judges,
    "errors": errors,
    "agreement": agreement,
    "pairs": pairs,
    "patterns": patterns,
    "categories": categories,
    "candidates": candidates,
}


def _longer(audit: Audit) -> Row:
    found = audit.longer_answer
    return {
        **_share("longer_won", found.share),
        "equal_lengths": found.equal,
        "ties": found.ties,
        "unknown_lengths": found.unknown,
    }


def _length_control(audit: Audit) -> Row | None:
    """Coefficient and adjusted ratings with whether they may be shown; null where they were not asked for."""
    found = audit.length_control
    if found is None:
        return None
    return {
        "status": found.status,
        "identified": found.identified,
        "gamma": _finite(found.gamma),
        "gamma_lower": _finite(found.lower),
        "gamma_upper": _finite(found.upper),
        "log_likelihood": _finite(found.log_likelihood),
        "resamples": found.resamples,
        "resamples_without_gamma": found.without_gamma,
        "length_adjusted": {
            one.candidate.full_id: _finite(to_display(found.theta)[place]) for place, one in enumerate(audit.candidates)
        },
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _seats(audit: Audit) -> Row | None:
    seats = audit.seats
    if seats is None:
        return None
    return {
        "won_from_first": seats.first,
        "won_from_second": seats.second,
        "ties": seats.ties,
        "forced_ties": seats.forced_ties,
        **_share("first_seat_share", seats.share),
    }
