"""Reads for the browser of matches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from arena.judging.ballots import Counts, DecisionReason, decision_sentence
from arena.judging.panels import is_same_model
from arena.judging.protocol import Protocol
from arena.models import Ballot, Call, CallStatus, Candidate, Decision, Judge, Jury, Match, Outcome, Tournament, Verdict

OPEN = (Match.Status.WAITING, Match.Status.JUDGING)
SEATS = {"first_seat": "A", "second_seat": "B"}
# In place of a pattern: judged, and nobody sat.
NOBODY = "none"


@dataclass(frozen=True, kw_only=True)
class MatchCriteria:
    """Keys of candidates; the rest as the form names it. What is empty filters nothing."""

    candidate: int | None = None
    against: int | None = None
    # won, lost (of `candidate`), decided, tie, inconclusive, void, open or withdrawn.
    result: str = ""
    # None: any. The empty text: samples without a category.
    category: str | None = None
    error: str = ""
    split: bool = False
    flip: bool = False
    truncated: bool = False
    # Keys of judges; what the first did, and of whom it differs.
    judge: int | None = None
    did: str = ""
    other: int | None = None
    # Votes of the panel as the audit sorts them, such as "AA-".
    votes: str = ""


def filtered_matches(tournament: Tournament, criteria: MatchCriteria) -> QuerySet[Match]:
    matches: QuerySet[Match] = Match.objects.filter(tournament=tournament)
    for one in (criteria.candidate, criteria.against):
        if one is not None:
            matches = matches.filter(Q(first=one) | Q(second=one))
    matches = _by_result(matches, criteria)
    if criteria.category is not None:
        matches = matches.filter(sample__category=criteria.category)
    ballots = Ballot.objects.filter(match=OuterRef("pk"), jury__primary=True)
    if criteria.split:
        votes = [Q(Exists(ballots.filter(status=Ballot.Status.VOTE, vote=vote))) for vote in Outcome.values]
        matches = matches.filter(votes[0] & votes[1] | votes[0] & votes[2] | votes[1] & votes[2])
    if criteria.flip:
        matches = matches.filter(Exists(ballots.filter(flipped=True)))
    if criteria.truncated:
        matches = matches.filter(Q(first_trial__truncated=True) | Q(second_trial__truncated=True))
    if criteria.error:
        verdicts = Verdict.objects.filter(match=OuterRef("pk"), error_code=criteria.error, ballot__jury__primary=True)
        if criteria.judge is not None:
            verdicts = verdicts.filter(ballot__judge=criteria.judge)
        matches = matches.filter(Exists(verdicts))
    if criteria.judge is not None:
        matches = _by_judge(matches, tournament, criteria, criteria.judge)
    if criteria.votes:
        matches = matches.filter(pk__in=_with_votes(tournament, criteria.votes))
    return matches.order_by("sequence")


def _by_judge(matches: QuerySet[Match], tournament: Tournament, criteria: MatchCriteria, judge: int) -> QuerySet[Match]:
    """Matches on which a judge did something: what stands behind a figure of the audit."""
    did = criteria.did
    own = Ballot.objects.filter(match=OuterRef("pk"), jury__primary=True, judge=judge)
    votes = own.filter(status=Ballot.Status.VOTE)
    first, second = (Q(Exists(votes.filter(vote=side))) for side in (Outcome.FIRST, Outcome.SECOND))
    if criteria.other is not None:
        others = Ballot.objects.filter(match=OuterRef("pk"), judge=criteria.other, status=Ballot.Status.VOTE)
        differ = [Q(Exists(votes.filter(vote=vote))) & Q(Exists(others.exclude(vote=vote))) for vote in Outcome.values]
        return matches.filter(differ[0] | differ[1] | differ[2])
    if did in {Ballot.Status.ABSTAINED, Ballot.Status.FAILED, Ballot.Status.EXCLUDED, Ballot.Status.INPUT_SKIPPED}:
        return matches.filter(Exists(own.filter(status=did)))
    if did == "flipped":
        return matches.filter(Exists(own.filter(flipped=True)))
    if did == Outcome.TIE:
        return matches.filter(Exists(votes.filter(vote=Outcome.TIE)))
    if did in SEATS:
        # Each time: whoever names the better answer names either seat once where both orders are judged.
        said = Verdict.objects.filter(ballot=OuterRef("pk"), status=CallStatus.SUCCEEDED)
        always = Exists(said.filter(winner=SEATS[did])), ~Exists(said.exclude(winner=SEATS[did]))
        return matches.filter(Exists(own.filter(*always)))
    if did in {"longer", "shorter"}:
        longer = Q(first_trial__characters__gt=F("second_trial__characters"))
        shorter = Q(first_trial__characters__lt=F("second_trial__characters"))
        taken, other = (longer, shorter) if did == "longer" else (shorter, longer)
        return matches.filter((first & taken) | (second & other))
    if did in {"itself", "not_itself", "played", "kin"}:
        own_sides, kin = _relations(tournament, judge)
        if did == "kin":
            return matches.filter((first & Q(first__in=kin)) | (second & Q(second__in=kin)))
        played = matches.filter(Q(first__in=own_sides) | Q(second__in=own_sides), Exists(votes))
        for_itself = (first & Q(first__in=own_sides)) | (second & Q(second__in=own_sides))
        return played if did == "played" else played.filter(for_itself if did == "itself" else ~for_itself)
    return matches.filter(Exists(own))


def _relations(tournament: Tournament, judge_id: int) -> tuple[list[int], list[int]]:
    """Candidates that are the judge itself, and others of its family."""
    judge = Judge.objects.filter(pk=judge_id, jury__tournament=tournament).first()
    if judge is None:
        return [], []
    model_id, family = str(judge.snapshot.get("model_id", "")), str(judge.snapshot.get("family", "")).strip()
    own, kin = [], []
    for candidate in Candidate.objects.filter(tournament=tournament):
        if is_same_model(model_id, str(candidate.snapshot.get("model_id", ""))):
            own.append(candidate.pk)
        elif family and is_same_model(family, str(candidate.snapshot.get("family", ""))):
            kin.append(candidate.pk)
    return own, kin


def _with_votes(tournament: Tournament, signs: str) -> QuerySet[Match]:
    """Keys of the matches whose primary panel voted so, whoever cast which vote."""
    panel = Q(ballots__jury__primary=True, ballots__judge__replacement=False)
    meanings = {
        "A": Q(ballots__status="vote", ballots__vote="first"),
        "B": Q(ballots__status="vote", ballots__vote="second"),
        "t": Q(ballots__status="vote", ballots__vote="tie"),
        "-": Q(ballots__status="abstained"),
        "!": Q(ballots__status="failed"),
    }
    names = {sign: f"n{place}" for place, sign in enumerate(meanings)}
    counts = {names[sign]: Count("ballots", filter=panel & meaning) for sign, meaning in meanings.items()}
    rows = Match.objects.filter(tournament=tournament).order_by().values("pk").annotate(**counts)
    wanted = {names[sign]: 0 if signs == NOBODY else signs.count(sign) for sign in meanings}
    decided = rows.filter(**wanted, status__in=[Match.Status.DECIDED, Match.Status.INCONCLUSIVE])
    return decided.values("pk")  # type: ignore[return-value]  # Keys alone, for a subquery.


def _by_result(matches: QuerySet[Match], criteria: MatchCriteria) -> QuerySet[Match]:
    result = criteria.result
    if result == "open":
        return matches.filter(status__in=OPEN)
    if result in {Match.Status.DECIDED, Match.Status.INCONCLUSIVE, Match.Status.VOID, Match.Status.WITHDRAWN}:
        return matches.filter(status=result)
    decisions = Decision.objects.current().filter(match=OuterRef("pk"), jury__primary=True)
    if result == Outcome.TIE:
        return matches.filter(Exists(decisions.filter(outcome=Outcome.TIE)))
    if result in {"won", "lost"} and criteria.candidate is not None:
        own, other = ("first", "second") if result == "won" else ("second", "first")
        return matches.filter(
            Q(Exists(decisions.filter(outcome=own)), first=criteria.candidate)
            | Q(Exists(decisions.filter(outcome=other)), second=criteria.candidate)
        )
    return matches


def place_of(judge: Judge) -> str:
    """A judge's name in an address: its place on the panel, or among the stand-ins."""
    return f"s{judge.position + 1}" if judge.replacement else str(judge.position + 1)


def judges_of(tournament: Tournament) -> list[Judge]:
    return list(Judge.objects.filter(jury__tournament=tournament, jury__primary=True))


def categories_played(tournament: Tournament) -> list[str]:
    return sorted(tournament.matches.order_by().values_list("sample__category", flat=True).distinct())


def error_codes_of(tournament: Tournament) -> list[str]:
    codes = (
        Verdict.objects.filter(tournament=tournament, rejudge=None)
        .exclude(error_code="")
        .order_by()
        .values_list("error_code")
    )
    return sorted(code for (code,) in codes.distinct())


def for_list(matches: QuerySet[Match]) -> QuerySet[Match]:
    """With what a row shows, and without a word of prompts and answers."""
    return (
        matches.select_related("sample", "first", "second", "first_trial", "second_trial")
        .only(
            "public_id",
            "sequence",
            "status",
            "forced_tie",
            "imported",
            "tournament_id",
            "sample__key",
            "sample__category",
            "first__label",
            "second__label",
            "first_trial__truncated",
            "second_trial__truncated",
        )
        .prefetch_related(
            Prefetch(
                "ballots",
                Ballot.objects.filter(jury__primary=True).select_related("judge").order_by("judge__position"),
                to_attr="primary_ballots",
            ),
            Prefetch("decisions", Decision.objects.current().filter(jury__primary=True), to_attr="current_decisions"),
        )
    )


@dataclass(frozen=True)
class MatchRow:
    match: Match
    outcome: str
    votes: str
    is_split: bool
    flips: int
    is_truncated: bool

    @property
    def winner(self) -> str:
        sides = {"first": self.match.first.label, "second": self.match.second.label}
        return sides.get(self.outcome, "")


def row_of(match: Match) -> MatchRow:
    ballots: list[Ballot] = match.primary_ballots  # type: ignore[attr-defined]
    decisions: list[Decision] = match.current_decisions  # type: ignore[attr-defined]
    cast = [ballot.vote for ballot in ballots if ballot.status == Ballot.Status.VOTE]
    trials = (match.first_trial, match.second_trial)
    return MatchRow(
        match=match,
        outcome=decisions[0].outcome if decisions else "",
        votes=_tally(cast),
        is_split=len(set(cast)) > 1,
        flips=sum(ballot.flipped for ballot in ballots),
        is_truncated=any(trial is not None and trial.truncated for trial in trials),
    )


def _tally(votes: list[str]) -> str:
    if not votes:
        return ""
    ties = votes.count(Outcome.TIE)
    sides = f"{votes.count(Outcome.FIRST)} : {votes.count(Outcome.SECOND)}"
    return f"{sides}, {ties} =" if ties else sides


def match_in_full(tournament: Tournament, public_id: str) -> Match | None:
    return (
        Match.objects.filter(tournament=tournament, public_id=public_id)
        .select_related("sample", "first", "second", "first_trial", "second_trial", "step", "tournament")
        .first()
    )


def neighbours(matches: QuerySet[Match], match: Match) -> tuple[Match | None, Match | None]:
    rows = matches.only("public_id", "sequence")
    before = rows.filter(sequence__lt=match.sequence).order_by("-sequence").first()
    after = rows.filter(sequence__gt=match.sequence).order_by("sequence").first()
    return before, after


def costs_by(subject: Literal["trial", "verdict"], keys: Iterable[int]) -> dict[int, Decimal]:
    """What the calls of each trial or verdict cost together; missing where a part of it is unknown."""
    calls = Call.objects.filter(**{f"{subject}__in": list(keys)}).order_by()
    rows = calls.values_list(f"{subject}_id").annotate(
        sum=Sum("cost_usd"), unknown=Count("pk", filter=Q(cost_usd=None))
    )
    return {key: cost for key, cost, unknown in rows if not unknown}


@dataclass
class VerdictView:
    verdict: Verdict
    # In seat A and in seat B.
    seats: tuple[str, str]
    # Whose side the judge took, or that it found them equal.
    winner: str
    is_tie: bool
    cost_usd: Decimal | None = None


@dataclass(frozen=True)
class BallotView:
    ballot: Ballot
    voted_for: str
    stands_in_for: str
    verdicts: list[VerdictView]


@dataclass(frozen=True)
class DecisionView:
    decision: Decision
    winner: str
    sentence: str


@dataclass
class JuryView:
    jury: Jury
    ballots: list[BallotView] = field(default_factory=list)
    decisions: list[DecisionView] = field(default_factory=list)

    @property
    def current(self) -> DecisionView | None:
        return next((view for view in self.decisions if view.decision.superseded_at is None), None)

    @property
    def superseded(self) -> list[DecisionView]:
        return [view for view in self.decisions if view.decision.superseded_at is not None]


def juries_on(match: Match) -> list[JuryView]:
    """Every jury of the match with its ballots and decisions, the primary one first. Raw replies are left out."""
    juries = [
        JuryView(jury)
        for jury in Jury.objects.filter(tournament=match.tournament_id).order_by("-primary", "created_at")
    ]
    by_key = {view.jury.pk: view for view in juries}
    ballots = (
        Ballot.objects.filter(match=match)
        .select_related("judge", "replaces__judge")
        .prefetch_related(Prefetch("verdicts", Verdict.objects.defer("raw").order_by("seat_order")))
        .order_by("judge__replacement", "judge__position")
    )
    for ballot in ballots:
        by_key[ballot.jury_id].ballots.append(_ballot_view(ballot, match))
    said = [said for jury in juries for view in jury.ballots for said in view.verdicts]
    costs = costs_by("verdict", [view.verdict.pk for view in said])
    for view in said:
        view.cost_usd = costs.get(view.verdict.pk)
    for decision in Decision.objects.filter(match=match).order_by("-created_at", "-pk"):
        jury = by_key[decision.jury_id]
        jury.decisions.append(_decision_view(decision, match, jury.jury))
    return [jury for jury in juries if jury.ballots or jury.decisions or jury.jury.primary]


def _ballot_view(ballot: Ballot, match: Match) -> BallotView:
    names = {"first": match.first.label, "second": match.second.label}
    verdicts = []
    for verdict in ballot.verdicts.all():
        seats = (names["first"], names["second"])
        if verdict.seat_order == Verdict.SeatOrder.SECOND_IN_A:
            seats = seats[::-1]
        verdicts.append(VerdictView(verdict, seats, names.get(verdict.vote, ""), is_tie=verdict.vote == Outcome.TIE))
    replaced = ballot.replaces.judge.label if ballot.replaces is not None else ""
    return BallotView(ballot, names.get(ballot.vote, ""), replaced, verdicts)


def _decision_view(decision: Decision, match: Match, jury: Jury) -> DecisionView:
    names = {"first": match.first.label, "second": match.second.label}
    return DecisionView(decision, names.get(decision.outcome, ""), _sentence(decision, match, jury))


def _sentence(decision: Decision, match: Match, jury: Jury) -> str:
    """Imported decisions may carry reasons and counts of another making."""
    if decision.reason not in {reason.value for reason in DecisionReason}:
        return decision.reason or _("The record says no more.")
    fields = Counts.__dataclass_fields__
    counts = Counts(**{name: int(n) for name, n in decision.counts.items() if name in fields})
    quorum = Protocol.from_json(jury.protocol).quorum
    sides = match.first.label, match.second.label
    return decision_sentence(DecisionReason(decision.reason), counts, quorum=quorum, sides=sides)
