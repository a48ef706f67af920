"""What another jury over recorded answers would call and cost, and everything that keeps it from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import QuerySet

from arena.judging.protocol import Protocol
from arena.models import CallStatus, LanguageModel, Match, Tournament
from arena.selectors.plan import Plan, plan_verdicts
from arena.selectors.specs import TournamentSpec, judge_problems, spec_of

ENDED = frozenset({Tournament.Status.FINISHED, Tournament.Status.STOPPED, Tournament.Status.FAILED})


@dataclass(frozen=True, kw_only=True)
class RejudgeSpec:
    tournament: Tournament
    name: str
    judges: Sequence[LanguageModel]
    replacement_judges: Sequence[LanguageModel] = ()
    protocol: Protocol
    budget_usd: Decimal | None = None

    def as_tournament(self) -> TournamentSpec:
        """The same candidates and samples under this jury, for plans and previews."""
        stored = spec_of(self.tournament)
        return TournamentSpec(
            name=self.name,
            task_set=stored.task_set,
            candidates=stored.candidates,
            judges=self.judges,
            replacement_judges=self.replacement_judges,
            protocol=self.protocol,
            pairing=stored.pairing,
            max_matches=stored.max_matches,
            seed=stored.seed,
            budget_usd=self.budget_usd,
        )


def answered_matches(tournament: Tournament) -> QuerySet[Match]:
    """Those that a jury can judge: both answers are recorded."""
    judged = [Match.Status.DECIDED, Match.Status.INCONCLUSIVE]
    both = {f"{side}_trial__status": CallStatus.SUCCEEDED for side in ("first", "second")}
    return Match.objects.filter(tournament=tournament, status__in=judged, **both)


def problems_of_rejudge(spec: RejudgeSpec) -> list[str]:
    problems = judge_problems(
        spec.judges, spec.replacement_judges, spec.protocol, team_id=spec.tournament.team_id, budget_usd=spec.budget_usd
    )
    if not spec.name.strip():
        problems.append("Give the jury a name.")
    if spec.tournament.status not in ENDED:
        status = spec.tournament.get_status_display()
        problems.append(f"The tournament is {status}; its answers can be judged again when it is over.")
    elif not answered_matches(spec.tournament).exists():
        problems.append("No match of the tournament has two answers, so there is nothing to judge.")
    return problems


def plan_of_rejudge(spec: RejudgeSpec) -> Plan:
    """A dry run: reads only, and calls nobody."""
    rows = answered_matches(spec.tournament).order_by("sequence")
    matches = list(
        rows.values_list(
            "sample", "first__language_model", "second__language_model", "first_trial__characters",
            "second_trial__characters",
        )
    )  # fmt: skip
    return plan_verdicts(spec.as_tournament(), matches, problems_of_rejudge(spec))
