"""Candidates whose answers keep failing sit out: their matches are withdrawn, and one answer a step is asked for.

The rule is in `arena.judging.bench`; here it reads rows and acts on them. Everything is safe to repeat, and the
rows of a tournament's candidates are the lock under which steps are closed, planned and withdrawn from: the
tournament's own row is what budgets are booked on, by transactions that hold answers which planning waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from arena import statements
from arena.dispatch import wake
from arena.judging.bench import STEPS_UNTIL_BACK, Review, Row, Seen, Side, Standing, review
from arena.judging.skips import LASTING_SKIPS
from arena.models import BenchProbe, CallStatus, Candidate, Match, Sample, Step, Tournament, Trial
from arena.selectors.cells import file_types_of, refused_types
from arena.selectors.pool import pool_of
from arena.services.wanted import cell_of, trials_for
from ratings.engine.draws import draw

BATCH = 500
UNSUITED = {code.value for code in LASTING_SKIPS}
COLUMNS = (
    "sequence",
    "step__number",
    "status",
    "first_id",
    "first_trial_id",
    "first_trial__status",
    "first_trial__skip_code",
    "second_id",
    "second_trial_id",
    "second_trial__status",
    "second_trial__skip_code",
)


class Turn(Enum):
    """Whether a match is played."""

    PLAYED = auto()
    WITHDRAWN = auto()
    # Earlier answers, which may bench one of the two, are not there yet.
    UNCERTAIN = auto()


def lock_candidates(tournament_id: int) -> list[Candidate]:
    """Inside a transaction: nobody else closes, plans or withdraws from steps of the tournament meanwhile."""
    rows = Candidate.objects.select_for_update(no_key=True, of=("self",)).filter(tournament=tournament_id)
    return list(rows.select_related("language_model__provider").order_by("pk"))


def standings_of(candidates: Iterable[Candidate]) -> dict[int, Standing]:
    """As they were at the end of the last complete step."""
    return {
        row.pk: Standing(row.failed_in_row, row.has_answered, row.benched_after, row.back_in_step) for row in candidates
    }


def turns_of(tournament_id: int, sequences: Sequence[int]) -> dict[int, Turn]:
    """Whether these matches are played, as far as that is certain by now. What is certain stays so."""
    # One query, so that the standings and the step that they are of belong together.
    before = statements.standings(tournament_id)
    counted, last = before[0].counted_steps, max(sequences)
    if not any(row.benched_after for row in before) and not statements.has_unanswered_before(
        tournament_id, last, counted
    ):
        # The usual case: everybody answered so far, so nobody is benched.
        return dict.fromkeys(sequences, Turn.PLAYED)
    rows = (
        Row(sequence, step, (_side(*sides[:4]), _side(*sides[4:])), status == Match.Status.WITHDRAWN)
        for sequence, step, status, *sides in statements.rows_up_to(tournament_id, last, counted)
    )
    result = review(standings_of(before), rows)
    withdrawn, unsure = set(result.to_withdraw), set(result.unsure)
    return {
        number: Turn.WITHDRAWN if number in withdrawn else Turn.UNCERTAIN if number in unsure else Turn.PLAYED
        for number in sequences
    }


def _rows(matches: QuerySet[Match]) -> Iterable[Row]:
    rows = matches.order_by("sequence").values_list(*COLUMNS)
    for sequence, step, status, *sides in rows.iterator(chunk_size=2000):
        yield Row(sequence, step, (_side(*sides[:4]), _side(*sides[4:])), status == Match.Status.WITHDRAWN)


def _side(candidate: int, trial: int | None, status: str | None, skip_code: str | None) -> Side:
    return Side(candidate, trial, seen(status, skip_code))


def seen(status: str | None, skip_code: str | None) -> Seen:
    if status == CallStatus.SUCCEEDED:
        return Seen.ANSWERED
    if status != CallStatus.FAILED:
        return Seen.OPEN
    return Seen.UNSUITED if skip_code in UNSUITED else Seen.FAILED


# Withdrawing ---------------------------------------------------------------------------------------------------
def withdraw(tournament: Tournament, candidates: Sequence[Candidate]) -> None:
    """Under the lock: withdraw what a benched candidate is planned in, and say who sits out."""
    counted = candidates[0].counted_steps if candidates else 0
    later = Match.objects.filter(tournament=tournament, step__number__gt=counted)
    result = review(standings_of(candidates), _rows(later))
    for start in range(0, len(result.to_withdraw), BATCH):
        batch = result.to_withdraw[start : start + BATCH]
        waiting = later.filter(sequence__in=batch, status=Match.Status.WAITING)
        ids = list(waiting.values_list("pk", flat=True))
        Match.objects.filter(pk__in=ids, status=Match.Status.WAITING).update(
            status=Match.Status.WITHDRAWN, decided_at=timezone.now()
        )
        _withdraw_trials(ids)
    _note(candidates, result)


def _note(candidates: Iterable[Candidate], result: Review) -> None:
    for candidate in candidates:
        standing = result.standings[candidate.pk]
        benched = standing.is_benched and standing.back_in_step is None
        if candidate.benched != benched:
            candidate.benched = benched
            candidate.save(update_fields=["benched"])


def _withdraw_trials(match_ids: list[int]) -> None:
    """Answers that were asked for by these matches alone are not called for any more."""
    of_matches = Q(matches_as_first__in=match_ids) | Q(matches_as_second__in=match_ids)
    queued = Trial.objects.filter(of_matches, status=CallStatus.QUEUED).order_by("pk")
    # Locked first and looked at again in a second statement: a tournament that plans at this moment holds its
    # trials until it is committed, and must find them queued.
    ids = sorted(set(queued.values_list("pk", flat=True)))
    list(Trial.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk", flat=True))
    open_matches = Match.objects.open()
    wanted = (
        Exists(open_matches.filter(first_trial=OuterRef("pk")))
        | Exists(open_matches.filter(second_trial=OuterRef("pk")))
        | Exists(BenchProbe.objects.filter(trial=OuterRef("pk")))
    )
    Trial.objects.filter(~wanted, pk__in=ids, status=CallStatus.QUEUED).update(status=CallStatus.WITHDRAWN)


# Closing a step ------------------------------------------------------------------------------------------------
def count_step(tournament: Tournament, step: Step, candidates: Sequence[Candidate]) -> None:
    """Under the lock, once all of the step is through: how everybody stands now, who is asked, who is back."""
    result = review(standings_of(candidates), _rows(Match.objects.filter(step=step)))
    probes = BenchProbe.objects.filter(step=step).values_list("candidate", "trial__status", "trial__skip_code")
    answers = {candidate: seen(status, code) for candidate, status, code in probes}
    for candidate in candidates:
        standing = result.standings[candidate.pk]
        standing.enter(step.number)
        standing.probed(answers.get(candidate.pk, Seen.OPEN), step.number)
        candidate.counted_steps = step.number
        candidate.failed_in_row, candidate.has_answered = standing.failed_in_row, standing.has_answered
        candidate.benched_after, candidate.back_in_step = standing.benched_after, standing.back_in_step
        candidate.save()
    _ask_benched(tournament, step.number + 1, candidates)
    _take_back(tournament, candidates, result.standings)


def _ask_benched(tournament: Tournament, number: int, candidates: Sequence[Candidate]) -> None:
    """One answer of each benched candidate goes with the next step, if there is one."""
    benched = [one for one in candidates if one.benched_after is not None and one.back_in_step is None]
    step = Step.objects.filter(tournament=tournament, number=number).first() if benched else None
    if step is None:
        return
    samples = pool_of(tournament)
    types = file_types_of({sample.pk for sample in samples})
    for candidate in benched:
        takes = [one for one in samples if not refused_types(candidate.language_model, types.get(one.pk, ()))]
        if not takes:
            continue
        sample = takes[draw(tournament.seed, "probe", number, candidate.position) % len(takes)]
        trial = trials_for(tournament, [(candidate, sample)])[cell_of(candidate, sample)]
        BenchProbe.objects.get_or_create(step=step, candidate=candidate, defaults={"trial": trial})
        if trial.provider_id is not None:
            wake([trial.provider_id])


def begin_anew(candidates: Iterable[Candidate]) -> None:
    """Under the lock, by somebody's wish: nobody sits out for answers that failed before."""
    for candidate in candidates:
        candidate.failed_in_row, candidate.benched = 0, False
        candidate.benched_after = candidate.back_in_step = None
        candidate.save(update_fields=["failed_in_row", "benched", "benched_after", "back_in_step"])


def _take_back(tournament: Tournament, candidates: Sequence[Candidate], standings: Mapping[int, Standing]) -> None:
    """Matches that were planned long before and withdrawn are played after all, from the step of its return on."""
    by_pk = {candidate.pk: candidate for candidate in candidates}
    # Those of whom it became known with this step; the others' matches came back before.
    first = candidates[0].counted_steps + STEPS_UNTIL_BACK if candidates else 0
    back = [pk for pk, one in standings.items() if one.is_benched and one.back_in_step == first]
    if not back:
        return
    rows = Match.objects.filter(Q(first__in=back) | Q(second__in=back), tournament=tournament)
    rows = rows.filter(status=Match.Status.WITHDRAWN).select_related("step", "sample").order_by("sequence")
    playable = [
        row for row in rows if all(standings[side].plays_in(row.step.number) for side in (row.first_id, row.second_id))
    ]
    play_after_all(tournament, playable, by_pk)


def play_after_all(tournament: Tournament, matches: Sequence[Match], by_pk: Mapping[int, Candidate]) -> None:
    sides: list[tuple[Candidate, Sample]] = [
        (by_pk[side], match.sample) for match in matches for side in (match.first_id, match.second_id)
    ]
    trials = trials_for(tournament, sides) if sides else {}
    for match in matches:
        match.first_trial = trials[cell_of(by_pk[match.first_id], match.sample)]
        match.second_trial = trials[cell_of(by_pk[match.second_id], match.sample)]
        match.status, match.decided_at, match.forced_tie = Match.Status.WAITING, None, False
        match.save(update_fields=["first_trial", "second_trial", "status", "decided_at", "forced_tie"])
    wake(trial.provider_id for trial in trials.values() if trial.provider_id is not None)
