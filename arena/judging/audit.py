"""What a jury did: how it agreed, and what its judges prefer beside quality. Figures alone, out of plain rows.

Shares carry Wilson's 95 % interval. Votes are coded by the model preferred (`first`, `second` of a match), seats are
told apart from them. What a record does not hold is None, never nought.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from arena.judging.panels import is_same_model
from ratings.engine.agreement import Agreement, Coding, Wilson, by_coding, wilson
from ratings.engine.comparisons import Comparisons
from ratings.engine.length import LengthControl, LongerAnswer, length_control, longer_answer

FIRST, SECOND, TIE = "first", "second", "tie"
OTHER_SIDE = {FIRST: SECOND, SECOND: FIRST}
# In the order in which a pattern of votes lists them.
SIGNS = {FIRST: "A", SECOND: "B", "abstained": "-", "failed": "!", TIE: "t"}
_SIGN_ORDER = "AB-!t"
MILLION = Decimal(1_000_000)
# Of more decisions the bootstrap would take minutes.
LENGTH_CONTROL_UP_TO = 5_000


@dataclass(frozen=True, slots=True)
class Model:
    """A candidate or a judge, by its key."""

    id: int
    position: int
    full_id: str
    label: str
    model_id: str
    family: str = ""
    replacement: bool = False
    # US dollars per million tokens, in and out, where known.
    price: tuple[Decimal, Decimal] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One side of a match. `trial` tells answers apart that several matches share."""

    trial: int
    candidate: int
    succeeded: bool
    truncated: bool = False
    characters: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Match:
    id: int
    sample: int
    category: str
    first: int
    second: int
    status: str
    forced_tie: bool = False
    # Of the jury's current decision; empty without one.
    outcome: str = ""
    answers: tuple[Answer, ...] = ()
    # Of all judge calls of the match, where a record sums them.
    judge_input_tokens: int | None = None
    judge_output_tokens: int | None = None

    @property
    def longer(self) -> str | None:
        """The side of the longer answer; None where they are equal or one is not known."""
        lengths = [answer.characters for answer in self.answers]
        if len(lengths) != 2 or None in lengths or lengths[0] == lengths[1]:
            return None
        return FIRST if (lengths[0] or 0) > (lengths[1] or 0) else SECOND


@dataclass(frozen=True, slots=True)
class Ballot:
    match: int
    judge: int
    status: str
    vote: str = ""
    flipped: bool = False
    flip_kind: str = ""

    @property
    def is_vote(self) -> bool:
        return self.status == "vote"

    @property
    def spoke(self) -> bool:
        return self.status in ("vote", "abstained")


@dataclass(frozen=True, slots=True)
class Verdict:
    match: int
    judge: int
    first_in_a: bool
    succeeded: bool
    # A, B or tie; empty where the call failed.
    winner: str = ""
    error_code: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class CallSum:
    calls: int
    cost_usd: Decimal | None
    unknown_cost: int


@dataclass(frozen=True)
class Evidence:
    candidates: Sequence[Model]
    judges: Sequence[Model]
    matches: Sequence[Match]
    ballots: Sequence[Ballot]
    verdicts: Sequence[Verdict]
    # By judge; None where no call was recorded, as in an import.
    calls: Mapping[int, CallSum] | None
    seat_orders: int


# Figures -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Preference:
    """A share, and that of the other judges on the very same matches."""

    own: Wilson
    others: Wilson

    @property
    def stands_out(self) -> bool:
        """Above an even share, and above the other judges where there are any."""
        if self.own.lower is None or self.own.lower <= 0.5:
            return False
        return self.others.share is None or self.own.lower > self.others.share


@dataclass(frozen=True)
class OwnMatches:
    """A judge that played: how it voted on its own matches."""

    matches: int
    votes: Preference
    # Matches of these that the whole panel gave to it.
    panel_wins: int

    @property
    def stands_out(self) -> bool:
        lower, others = self.votes.own.lower, self.votes.others.share
        return lower is not None and others is not None and lower > others


@dataclass(frozen=True)
class JudgeFigures:
    judge: Model
    ballots: int
    votes: Mapping[str, int]
    abstained: int
    failed: int
    excluded: int
    input_skipped: int
    # Matches on which it voted or abstained.
    spoke: int
    # None where one order is judged, in which nobody can contradict itself.
    flips: Wilson | None
    # Another winner in each order; a tie in one of them. None where the record does not tell.
    side_flips: int | None
    tie_flips: int | None
    ties: Wilson
    # Of its decisive votes, those for the first candidate of the match.
    first_candidate: Wilson
    # Of its verdicts that name a seat, those that name the first; None where seats were not recorded.
    first_seat: Wilson | None
    seat_ties: int | None
    longer: Preference
    own: OwnMatches | None
    kin: Preference
    errors: Mapping[str, int]
    calls: int | None
    cost_usd: Decimal | None
    calls_of_unknown_cost: int | None
    input_tokens: int | None
    output_tokens: int | None
    median_duration_ms: float | None

    @property
    def failures(self) -> Wilson:
        """Of the matches it was asked about, those on which it gave no verdict."""
        return wilson(self.failed, self.failed + self.spoke)

    @property
    def prefers_seat(self) -> str:
        """`first` or `second` where an even share lies outside the interval."""
        share = self.first_seat
        if share is None or share.lower is None or share.upper is None:
            return ""
        return FIRST if share.lower > 0.5 else SECOND if share.upper < 0.5 else ""


@dataclass(frozen=True)
class Pattern:
    """Votes of a panel, sorted: A, B, - (abstained), ! (failed), t (tie)."""

    signs: str
    matches: int
    conclusive: int


@dataclass(frozen=True)
class CategoryFigures:
    category: str
    judged: int
    inconclusive: Wilson


@dataclass(frozen=True)
class CandidateFigures:
    candidate: Model
    participated: int
    completed: int
    answers: int
    truncated: int
    mean_output_tokens: float | None
    cost_usd: Decimal | None
    answers_of_unknown_cost: int

    @property
    def coverage(self) -> float | None:
        return self.completed / self.participated if self.participated else None


@dataclass(frozen=True)
class SeatWins:
    """Matches by the seat of their winner, where each was judged in one order."""

    first: int
    second: int
    ties: int
    forced_ties: int

    @property
    def share(self) -> Wilson:
        return wilson(self.first, self.first + self.second)


@dataclass(frozen=True)
class Totals:
    planned: int
    decided: int
    inconclusive: int
    void: int
    forced_ties: int
    samples: int
    outcomes: Mapping[str, int]
    answers: int
    truncated: int
    answer_input_tokens: int | None
    answer_output_tokens: int | None
    answer_cost_usd: Decimal | None
    answers_of_unknown_cost: int
    judge_input_tokens: int | None
    judge_output_tokens: int | None
    judge_cost_usd: Decimal | None
    judge_calls_of_unknown_cost: int
    # Tokens were recorded for the panel as a whole, and priced at the mean of its judges.
    judge_cost_at_mean_price: bool

    @property
    def coverage(self) -> float | None:
        return (self.decided + self.inconclusive) / self.planned if self.planned else None


@dataclass(frozen=True)
class Audit:
    totals: Totals
    judges: Sequence[JudgeFigures]
    # By coding: ties_merged is the one that pages show first.
    agreement: Mapping[Coding, Agreement]
    # Judged matches, on which agreement could have been.
    judged: int
    patterns: Sequence[Pattern]
    categories: Sequence[CategoryFigures]
    candidates: Sequence[CandidateFigures]
    longer_answer: LongerAnswer
    length_control: LengthControl | None
    seats: SeatWins | None
    # (judge, candidate) of one family that are not the same model.
    family_overlaps: Sequence[tuple[Model, Model]]
    self_judging: Sequence[Model] = field(default_factory=tuple)


def audit(evidence: Evidence, *, resamples: int = 1000, seed: int = 0, with_length_control: bool = False) -> Audit:
    """All figures of one jury. The length coefficient is asked for apart: its bootstrap takes seconds."""
    board = _Board(evidence)
    primary = [judge for judge in evidence.judges if not judge.replacement]
    panel = {judge.id for judge in primary}
    votes = [
        (ballot.match, ballot.judge, ballot.vote)
        for ballot in evidence.ballots
        if ballot.is_vote and ballot.judge in panel
    ]
    samples: dict[Hashable, Hashable] = {match.id: match.sample for match in evidence.matches}
    lengths = _lengths(evidence)
    overlaps = _overlaps(evidence)
    return Audit(
        totals=_totals(evidence),
        judges=[_judge(board, judge) for judge in evidence.judges],
        agreement=by_coding(votes, samples, resamples=resamples, seed=seed),
        judged=len(board.judged),
        patterns=_patterns(board, panel),
        categories=_categories(board),
        candidates=[_candidate(evidence, candidate) for candidate in evidence.candidates],
        longer_answer=longer_answer(*lengths),
        length_control=_length_control(lengths, seed) if with_length_control else None,
        seats=_seat_wins(evidence) if evidence.seat_orders == 1 else None,
        family_overlaps=overlaps,
        self_judging=[judge for judge in evidence.judges if board.own_matches(judge)],
    )


class _Board:
    """The rows of a jury by what they are looked up by."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.matches = {match.id: match for match in evidence.matches}
        self.ballots: dict[int, list[Ballot]] = defaultdict(list)
        self.ballots_on: dict[int, list[Ballot]] = defaultdict(list)
        for ballot in evidence.ballots:
            self.ballots[ballot.judge].append(ballot)
            self.ballots_on[ballot.match].append(ballot)
        self.verdicts: dict[int, list[Verdict]] = defaultdict(list)
        for verdict in evidence.verdicts:
            self.verdicts[verdict.judge].append(verdict)
        self.judged = [match for match in evidence.matches if match.outcome]
        self.candidates = {candidate.id: candidate for candidate in evidence.candidates}

    def side_of(self, judge: Model, match: Match) -> str | None:
        """The side on which the judge itself plays."""
        for side, candidate in ((FIRST, match.first), (SECOND, match.second)):
            if is_same_model(judge.model_id, self.candidates[candidate].model_id):
                return side
        return None

    def kin_side(self, judge: Model, match: Match) -> str | None:
        """The side of the judge's family, where only one is and it is not the judge itself."""
        family = judge.family.strip()
        if not family or self.side_of(judge, match) is not None:
            return None
        kin = [
            side
            for side, candidate in ((FIRST, match.first), (SECOND, match.second))
            if is_same_model(family, self.candidates[candidate].family)
        ]
        return kin[0] if len(kin) == 1 else None

    def own_matches(self, judge: Model) -> list[Match]:
        """Those that it played in and voted on."""
        matches = [self.matches[ballot.match] for ballot in self.ballots[judge.id] if ballot.is_vote]
        return [match for match in matches if self.side_of(judge, match) is not None]

    def votes_against(self, judge: Model, sides: Mapping[int, str], *, ties: bool) -> Preference:
        """How often the judge, and the others on the same matches, voted for a side of each match.

        With `ties` a tie counts as a vote that was not for it; without, it is not in the share.
        """
        counts = {True: Counter[bool](), False: Counter[bool]()}
        for match, side in sides.items():
            ballots = self.ballots_on[match]
            if not any(ballot.judge == judge.id and self._counts(ballot, ties=ties) for ballot in ballots):
                continue
            for ballot in ballots:
                if self._counts(ballot, ties=ties):
                    counts[ballot.judge == judge.id][ballot.vote == side] += 1
        own, others = (wilson(counts[mine][True], counts[mine].total()) for mine in (True, False))
        return Preference(own, others)

    @staticmethod
    def _counts(ballot: Ballot, *, ties: bool) -> bool:
        return ballot.is_vote and (ties or ballot.vote != TIE)


# Judges ------------------------------------------------------------------------------------------------------
def _judge(board: _Board, judge: Model) -> JudgeFigures:
    ballots = board.ballots[judge.id]
    by_status = Counter(ballot.status for ballot in ballots)
    votes = Counter(ballot.vote for ballot in ballots if ballot.is_vote)
    flipped = [ballot for ballot in ballots if ballot.flipped]
    kinds = Counter(ballot.flip_kind for ballot in flipped)
    two_orders = board.evidence.seat_orders == 2
    known_kinds = two_orders and "" not in kinds
    spoke = sum(ballot.spoke for ballot in ballots)
    first_seat, seat_ties = _first_seat(board, judge)
    verdicts = board.verdicts[judge.id]
    durations = [verdict.duration_ms for verdict in verdicts if verdict.duration_ms is not None]
    calls = None if board.evidence.calls is None else board.evidence.calls.get(judge.id, CallSum(0, Decimal(0), 0))
    longer = {match.id: match.longer for match in board.evidence.matches}
    kin = {match.id: board.kin_side(judge, match) for match in board.evidence.matches}
    return JudgeFigures(
        judge=judge,
        ballots=len(ballots),
        votes={side: votes[side] for side in (FIRST, SECOND, TIE)},
        abstained=by_status["abstained"],
        failed=by_status["failed"],
        excluded=by_status["excluded"],
        input_skipped=by_status["input_skipped"],
        spoke=spoke,
        flips=wilson(len(flipped), spoke) if two_orders else None,
        side_flips=kinds["side"] if known_kinds else None,
        tie_flips=kinds["tie"] if known_kinds else None,
        ties=wilson(votes[TIE], spoke),
        first_candidate=wilson(votes[FIRST], votes[FIRST] + votes[SECOND]),
        first_seat=first_seat,
        seat_ties=seat_ties,
        longer=board.votes_against(judge, _known(longer), ties=False),
        own=_own(board, judge),
        kin=board.votes_against(judge, _known(kin), ties=False),
        errors=dict(Counter(verdict.error_code for verdict in verdicts if verdict.error_code)),
        calls=None if calls is None else calls.calls,
        cost_usd=None if calls is None else calls.cost_usd,
        calls_of_unknown_cost=None if calls is None else calls.unknown_cost,
        input_tokens=_sum(verdict.input_tokens for verdict in verdicts),
        output_tokens=_sum(verdict.output_tokens for verdict in verdicts),
        median_duration_ms=statistics.median(durations) if durations else None,
    )


def _known(sides: Mapping[int, str | None]) -> dict[int, str]:
    return {match: side for match, side in sides.items() if side is not None}


def _first_seat(board: _Board, judge: Model) -> tuple[Wilson | None, int | None]:
    """Where both orders are judged, only matches judged in both count: else the better answer sat there more often."""
    by_match: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in board.verdicts[judge.id]:
        if verdict.succeeded:
            by_match[verdict.match].append(verdict)
    orders = board.evidence.seat_orders
    balanced = [verdict for found in by_match.values() if len(found) == orders for verdict in found]
    if not balanced:
        return None, None
    named = Counter(verdict.winner for verdict in balanced)
    return wilson(named["A"], named["A"] + named["B"]), named["tie"]


def _own(board: _Board, judge: Model) -> OwnMatches | None:
    matches = board.own_matches(judge)
    if not matches:
        return None
    sides = {match.id: side for match in matches if (side := board.side_of(judge, match)) is not None}
    return OwnMatches(
        matches=len(sides),
        votes=board.votes_against(judge, sides, ties=True),
        panel_wins=sum(match.outcome == sides[match.id] for match in matches),
    )


def _overlaps(evidence: Evidence) -> list[tuple[Model, Model]]:
    return [
        (judge, candidate)
        for judge in evidence.judges
        for candidate in evidence.candidates
        # A blank family is an unknown one, and two unknowns prove nothing.
        if judge.family.strip()
        and is_same_model(judge.family, candidate.family)
        and not is_same_model(judge.model_id, candidate.model_id)
    ]


# The panel ---------------------------------------------------------------------------------------------------
def _patterns(board: _Board, panel: set[int]) -> list[Pattern]:
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for match in board.judged:
        signs = [_sign(ballot) for ballot in board.ballots_on[match.id] if ballot.judge in panel]
        pattern = "".join(sorted(filter(None, signs), key=_SIGN_ORDER.index))
        found[pattern][match.outcome != "inconclusive"] += 1
    patterns = [Pattern(signs, counts.total(), counts[True]) for signs, counts in found.items()]
    return sorted(patterns, key=lambda pattern: (-pattern.matches, pattern.signs))


def _sign(ballot: Ballot) -> str:
    """Empty for a judge that did not sit."""
    return SIGNS.get(ballot.vote if ballot.is_vote else ballot.status, "")


def _categories(board: _Board) -> list[CategoryFigures]:
    judged = Counter(match.category for match in board.judged)
    open_ = Counter(match.category for match in board.judged if match.outcome == "inconclusive")
    return [CategoryFigures(name, count, wilson(open_[name], count)) for name, count in sorted(judged.items())]


def _candidate(evidence: Evidence, candidate: Model) -> CandidateFigures:
    matches = [match for match in evidence.matches if candidate.id in (match.first, match.second)]
    answers = [answer for answer in _answers(matches) if answer.candidate == candidate.id and answer.succeeded]
    tokens = [answer.output_tokens for answer in answers if answer.output_tokens is not None]
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    return CandidateFigures(
        candidate=candidate,
        participated=len(matches),
        completed=sum(bool(match.outcome) for match in matches),
        answers=len(answers),
        truncated=sum(answer.truncated for answer in answers),
        mean_output_tokens=statistics.fmean(tokens) if tokens else None,
        cost_usd=sum(costs, Decimal(0)) if costs else None,
        answers_of_unknown_cost=len(answers) - len(costs),
    )


def _answers(matches: Iterable[Match]) -> list[Answer]:
    """Each answer once, however many matches share it."""
    return list({answer.trial: answer for match in matches for answer in match.answers}.values())


def _seat_wins(evidence: Evidence) -> SeatWins | None:
    in_a: dict[int, bool] = {verdict.match: verdict.first_in_a for verdict in evidence.verdicts}
    seats = Counter(
        match.outcome if match.outcome == TIE else "A" if (match.outcome == FIRST) == in_a[match.id] else "B"
        for match in evidence.matches
        if match.outcome in (FIRST, SECOND, TIE) and match.id in in_a
    )
    if not seats:
        return None
    return SeatWins(seats["A"], seats["B"], seats[TIE], sum(match.forced_tie for match in evidence.matches))


def _lengths(evidence: Evidence) -> tuple[Comparisons, list[float], list[float]]:
    """The rated decisions, and the lengths of the answers of either side."""
    places = {candidate.id: place for place, candidate in enumerate(evidence.candidates)}
    rated = [match for match in evidence.matches if match.status == "decided" and match.outcome in (FIRST, SECOND, TIE)]
    lengths = [
        [float("nan") if answer.characters is None else float(answer.characters) for answer in match.answers]
        for match in rated
    ]
    comparisons = Comparisons(
        len(places),
        np.array([places[match.first] for match in rated], dtype=np.int64),
        np.array([places[match.second] for match in rated], dtype=np.int64),
        np.array([(FIRST, SECOND, TIE).index(match.outcome) for match in rated], dtype=np.int64),
    )
    return comparisons, [pair[0] for pair in lengths], [pair[1] for pair in lengths]


def _length_control(lengths: tuple[Comparisons, list[float], list[float]], seed: int) -> LengthControl | None:
    rows = len(lengths[1])
    return length_control(*lengths, seed=seed) if 0 < rows <= LENGTH_CONTROL_UP_TO else None


# Sums --------------------------------------------------------------------------------------------------------
def _totals(evidence: Evidence) -> Totals:
    statuses = Counter(match.status for match in evidence.matches)
    answers = [answer for answer in _answers(evidence.matches) if answer.succeeded]
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    tokens_in, tokens_out, judge_cost, unknown, at_mean = _judge_sums(evidence)
    return Totals(
        planned=len(evidence.matches),
        decided=statuses["decided"],
        inconclusive=statuses["inconclusive"],
        void=statuses["void"],
        forced_ties=sum(match.forced_tie for match in evidence.matches),
        samples=len({match.sample for match in evidence.matches}),
        outcomes=dict(Counter(match.outcome for match in evidence.matches if match.outcome)),
        answers=len(answers),
        truncated=sum(answer.truncated for answer in answers),
        answer_input_tokens=_sum(answer.input_tokens for answer in answers),
        answer_output_tokens=_sum(answer.output_tokens for answer in answers),
        answer_cost_usd=sum(costs, Decimal(0)) if costs else None,
        answers_of_unknown_cost=len(answers) - len(costs),
        judge_input_tokens=tokens_in,
        judge_output_tokens=tokens_out,
        judge_cost_usd=judge_cost,
        judge_calls_of_unknown_cost=unknown,
        judge_cost_at_mean_price=at_mean,
    )


def _judge_sums(evidence: Evidence) -> tuple[int | None, int | None, Decimal | None, int, bool]:
    if evidence.calls is not None:
        sums = evidence.calls.values()
        known = [total.cost_usd for total in sums if total.cost_usd is not None]
        return (
            _sum(verdict.input_tokens for verdict in evidence.verdicts),
            _sum(verdict.output_tokens for verdict in evidence.verdicts),
            sum(known, Decimal(0)) if known else None,
            sum(total.unknown_cost for total in sums),
            False,
        )
    tokens_in = _sum(match.judge_input_tokens for match in evidence.matches)
    tokens_out = _sum(match.judge_output_tokens for match in evidence.matches)
    prices = [judge.price for judge in evidence.judges if not judge.replacement]
    if tokens_in is None or tokens_out is None or not prices or None in prices:
        return tokens_in, tokens_out, None, 0, False
    mean_in, mean_out = (sum((p[i] for p in prices if p), Decimal(0)) / len(prices) for i in (0, 1))
    return tokens_in, tokens_out, (tokens_in * mean_in + tokens_out * mean_out) / MILLION, 0, True


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
