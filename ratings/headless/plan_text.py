"""The plan before the money: what a run would do and cost, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from arena.selectors.plan import ModelPlan, Plan

ROLES = {"candidate": "answers", "judge": "judges", "stand_in": "stands in"}


def plan_lines(plan: Plan) -> Iterator[str]:
    spec = plan.spec
    yield f"Plan of {spec.name}: {spec.task_set}, {plan.samples} samples"
    yield (
        f"  {plan.matches} matches of {plan.possible} possible, {spec.pairing.replace('_', ' ')}, "
        f"seed {spec.seed}, jury {spec.protocol.preset}"
    )
    yield (
        f"  {plan.trials_to_generate} answers to generate, {plan.trials_cached} there already; "
        f"{plan.judge_calls} judge calls" + (f"; {plan.void} matches are void" if plan.void else "")
    )
    yield from _table(plan)
    worst = _dollars(plan.worst_usd) if plan.is_bounded else "not known"
    least = "at least " if plan.unpriced and plan.expected_usd is not None else ""
    yield f"  expected {least}{_dollars(plan.expected_usd)}, worst case {worst}, budget {_budget(plan)}"
    for warning in plan.warnings:
        yield f"  {'note' if warning.kind == 'note' else 'WARNING'}: {warning.sentence}"


def _table(plan: Plan) -> Iterator[str]:
    rows = [("model", "", "calls", "at most", "$ per million in / out", "expected", "worst case")]
    rows += [
        (
            row.model.full_id,
            ROLES[row.role],
            str(row.calls),
            str(row.most_calls),
            _price(row),
            _dollars(row.expected_usd),
            _dollars(row.worst_usd),
        )
        for row in plan.called
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        left = [row[column].ljust(widths[column]) for column in range(2)]
        right = [row[column].rjust(widths[column]) for column in range(2, len(row))]
        yield "  " + "  ".join([*left, *right])


def _price(row: ModelPlan) -> str:
    if row.price is None:
        return "no price"
    return f"{_short(row.price.input_per_million)} / {_short(row.price.output_per_million)}"


def _short(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _dollars(value: Decimal | None) -> str:
    return "not known" if value is None else f"${value:.4f}"


def _budget(plan: Plan) -> str:
    budget, expected, worst = plan.spec.budget_usd, plan.expected_share, plan.worst_share
    if budget is None:
        return "none"
    if expected is None or worst is None:
        return f"${budget}"
    return f"${budget} ({expected:.0%} of it expected, {worst:.0%} in the worst case)"


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "samples": plan.samples,
        "matches": plan.matches,
        "possible_matches": plan.possible,
        "void_matches": plan.void,
        "answers_to_generate": plan.trials_to_generate,
        "answers_cached": plan.trials_cached,
        "answers_failed_for_good": plan.trials_lasting,
        "judge_calls": plan.judge_calls,
        "expected_usd": None if plan.expected_usd is None else str(plan.expected_usd),
        "worst_case_usd": str(plan.worst_usd) if plan.is_bounded else None,
        "budget_usd": None if plan.spec.budget_usd is None else str(plan.spec.budget_usd),
        "unpriced": plan.unpriced,
        "models": [
            {
                "model": row.model.full_id,
                "role": row.role,
                "calls": row.calls,
                "most_calls": row.most_calls,
                "input_per_million_usd": str(row.price.input_per_million) if row.price else None,
                "output_per_million_usd": str(row.price.output_per_million) if row.price else None,
                "price_source": row.price.source if row.price else None,
                "calls_seen": row.seen.calls if row.seen else 0,
                "expected_usd": None if row.expected_usd is None else str(row.expected_usd),
                "worst_case_usd": None if row.worst_usd is None else str(row.worst_usd),
            }
            for row in plan.called
        ],
        "warnings": [{"code": warning.code, "sentence": warning.sentence} for warning in plan.warnings],
    }
