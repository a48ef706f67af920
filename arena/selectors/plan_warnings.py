"""What somebody should know before money is spent, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from arena.judging.panels import FamilyMember, family_overlaps, is_same_model, panel_shrinks_below_quorum
from arena.selectors.language_models import probe_of

if TYPE_CHECKING:
    from arena.selectors.plan import Plan

THIN_SLICE = 20
ROUNDS_TO_DEFEND = 200
SHOWN = 4
SAID_CHARACTERS = 300
NOTES = {"few_rounds", "full_ids", "lasting", "follows_results", "worst_over_budget"}


@dataclass(frozen=True)
class PlanWarning:
    code: str
    sentence: str
    # `note` is worth knowing; `warning` changes what the result is worth.
    kind: str = "warning"


def warnings_of(plan: Plan) -> list[PlanWarning]:
    return [
        PlanWarning(code, sentence, "note" if code in NOTES else "warning")
        for code, sentence in [
            *_tests(plan),
            *_money(plan),
            *_panel(plan),
            *_files(plan),
            *_size(plan),
        ]
    ]


def listed(names: Iterable[str]) -> str:
    """A few of them by name, the rest by number."""
    every = list(names)
    if len(every) <= SHOWN:
        return ", ".join(every)
    return _("%(names)s and %(count)d more") % {"names": ", ".join(every[:SHOWN]), "count": len(every) - SHOWN}


def _money(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.unpriced:
        yield (
            "unpriced",
            _("No price is known for %(names)s: their cost is missing from every sum.")
            % {"names": listed(plan.unpriced)},
        )
    if plan.unlimited:
        yield (
            "no_max_tokens",
            _("%(names)s have no answer limit (max tokens): their worst case is not known.")
            % {"names": listed(plan.unlimited)},
        )
    budget, expected = plan.spec.budget_usd, plan.expected_usd
    if budget is not None and expected is not None and budget < expected:
        yield (
            "small_budget",
            _("The budget of $%(budget).2f is less than the expected cost: the tournament would pause on the way.")
            % {"budget": budget},
        )
    elif budget is not None and plan.is_bounded and budget < plan.worst_usd:
        yield (
            "worst_over_budget",
            _(
                "The worst case is $%(worst).2f, more than the budget of $%(budget).2f: if it came to that, the "
                "tournament would pause on the way."
            )
            % {"worst": plan.worst_usd, "budget": budget},
        )


def _tests(plan: Plan) -> Iterator[tuple[str, str]]:
    for model in plan.spec.models:
        probe = probe_of(model)
        if probe is not None and not probe["ok"]:
            yield (
                "failed_test",
                _("The last test of %(name)s failed: %(said)s")
                % {"name": model.full_id, "said": Truncator(probe["sentence"]).chars(SAID_CHARACTERS)},
            )


def _panel(plan: Plan) -> Iterator[tuple[str, str]]:
    spec = plan.spec
    labels = {row.model.model_id: row.label for row in reversed(plan.rows)}
    overlaps = family_overlaps(_members(plan, "judge") + _members(plan, "stand_in"), _members(plan, "candidate"))
    families: dict[tuple[str, str], list[str]] = {}
    for overlap in overlaps:
        # A judge never sits over its own answers, so it cannot favour itself.
        if not is_same_model(overlap.judge_model_id, overlap.candidate_model_id):
            key = labels[overlap.judge_model_id], overlap.family
            families.setdefault(key, []).append(labels[overlap.candidate_model_id])
    for (judge, family), candidates in families.items():
        yield (
            "family_overlap",
            _("Judge %(judge)s is of the family %(family)s, like the candidates %(names)s: it may favour its kin.")
            % {"judge": judge, "family": family, "names": listed(candidates)},
        )
    for judge, count in plan.excluded_by_judge.items():
        sentence = ngettext(
            "Judge %(judge)s is also a candidate and sits out the %(count)d match it plays.",
            "Judge %(judge)s is also a candidate and sits out the %(count)d matches it plays.",
            count,
        )
        yield "self_judging", sentence % {"judge": judge, "count": count}
    shrunk = panel_shrinks_below_quorum(
        [model.model_id for model in spec.judges],
        [model.model_id for model in spec.candidates],
        max(1, spec.protocol.quorum),
    )
    if shrunk:
        names = [f"{labels[pair.first_model_id]} – {labels[pair.second_model_id]}" for pair in shrunk]
        yield (
            "below_quorum",
            _("These pairs leave fewer judges than the quorum of %(quorum)d, so no match of theirs can be decided:")
            % {"quorum": spec.protocol.quorum}
            + f" {listed(names)}.",
        )
    if plan.below_quorum:
        sentence = ngettext(
            "%(count)d match has fewer judges than the quorum and stays inconclusive.",
            "%(count)d matches have fewer judges than the quorum and stay inconclusive.",
            plan.below_quorum,
        )
        yield "undecidable", sentence % {"count": plan.below_quorum}


def _members(plan: Plan, role: str) -> list[FamilyMember]:
    return [FamilyMember(row.model.model_id, row.model.family) for row in plan.rows if row.role == role]


def _files(plan: Plan) -> Iterator[tuple[str, str]]:
    for judge, count in plan.unread_by_judge.items():
        sentence = ngettext(
            "Judge %(judge)s cannot read the files of %(count)d match and is left out of it.",
            "Judge %(judge)s cannot read the files of %(count)d matches and is left out of them.",
            count,
        )
        yield "judge_files", sentence % {"judge": judge, "count": count}
    for candidate, count in plan.void_by_candidate.items():
        sentence = ngettext(
            "%(candidate)s cannot take the input of %(count)d match, which is void.",
            "%(candidate)s cannot take the input of %(count)d matches, which are void.",
            count,
        )
        yield "candidate_files", sentence % {"candidate": candidate, "count": count}


def _size(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.trials_lasting:
        sentence = ngettext(
            "%(count)d answer failed earlier for a reason that stays, and is not tried again.",
            "%(count)d answers failed earlier for a reason that stays, and are not tried again.",
            plan.trials_lasting,
        )
        yield "lasting", sentence % {"count": plan.trials_lasting}
    if plan.spec.follows_results and plan.matches:
        yield (
            "follows_results",
            _(
                "The pairing follows results, so who meets whom is not known yet. Calls and costs are those of a "
                "schedule of equally good candidates; the worst case holds for any."
            ),
        )
    if plan.matches < plan.spec.max_matches:
        yield (
            "fewer_matches",
            _("Only %(possible)d different matches are possible, fewer than the %(wanted)d asked for.")
            % {"possible": plan.matches, "wanted": plan.spec.max_matches},
        )
    thin = [name for name in plan.categories if plan.decidable_by_category[name] < THIN_SLICE]
    if thin and plan.matches:
        yield (
            "thin_category",
            _("Too few matches for a board of their own (under %(least)d): %(names)s.")
            % {"least": THIN_SLICE, "names": listed(_with_counts(thin, plan.decidable_by_category))},
        )
    clashing = [name for name, count in _labels(plan).items() if count > 1]
    if clashing:
        yield (
            "full_ids",
            _("Several models are called %(names)s; boards show their full ids.") % {"names": listed(clashing)},
        )
    yield from _to_defend(plan)


def _with_counts(names: Sequence[str], counts: Counter[str]) -> list[str]:
    return [f"{name or _('without category')} ({counts[name]})" for name in names]


def _labels(plan: Plan) -> Counter[str]:
    return Counter(model.label for model in plan.spec.candidates)


def _to_defend(plan: Plan) -> Iterator[tuple[str, str]]:
    fewest = min(plan.matches_by_candidate.values(), default=0)
    if plan.matches and fewest < ROUNDS_TO_DEFEND:
        yield (
            "few_rounds",
            _(
                "A ranking you intend to defend takes hundreds of rounds of each candidate's own (here: %(fewest)d) "
                "and a jury wholly outside the candidates' families."
            )
            % {"fewest": fewest},
        )
