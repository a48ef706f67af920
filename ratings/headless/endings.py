"""How a run ended, as an exit code that a script can tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from arena.models import Ballot, Match, Tournament, Trial


class Exit(IntEnum):
    FINISHED = 0
    NOT_STARTED = 2
    BUDGET = 3
    FAILURES = 4
    INTERRUPTED = 130


EXIT_CODES = """exit codes:
  0    finished: every match was decided, was inconclusive because the judges disagreed, or was void
       because a model takes no such input
  2    nothing was started: a problem in the configuration, or no --yes where nobody can be asked
  3    paused by the budget; go on with --resume ID --budget USD
  4    ended with failures: the tournament failed or was stopped, or it finished and answers failed for
       another reason than UNSUPPORTED_INPUT, or matches are inconclusive where calls of judges failed
  130  interrupted or paused; go on with --resume ID
"""


@dataclass(frozen=True, slots=True)
class Ending:
    code: Exit
    sentence: str


def ending_of(tournament: Tournament) -> Ending:
    Status = Tournament.Status
    go_on = f"Go on with: manage.py run_tournament --resume {tournament.public_id}"
    if tournament.status == Status.PAUSED:
        if tournament.reason == Tournament.Reason.BUDGET:
            sentence = f"Paused by the budget of ${tournament.budget_usd}. {tournament.reason_text}"
            return Ending(Exit.BUDGET, f"{sentence}\n{go_on} --budget USD")
        return Ending(Exit.INTERRUPTED, f"Paused. {go_on}")
    if tournament.status in {Status.RUNNING, Status.DRAFT}:
        return Ending(Exit.INTERRUPTED, f"Not finished. {go_on}")
    if tournament.status != Status.FINISHED:
        why = tournament.reason_text or tournament.get_reason_display()
        return Ending(Exit.FAILURES, f"The tournament {tournament.get_status_display()}: {why}".rstrip(": "))
    failures = failures_of(tournament)
    if failures:
        return Ending(Exit.FAILURES, "Finished with failures: " + " ".join(failures))
    return Ending(Exit.FINISHED, f"Finished. {tournament.reason_text}".strip())


def failures_of(tournament: Tournament) -> list[str]:
    """What calls that failed cost the result, in sentences."""
    failed = (
        Trial.objects.filter(requests__tournament=tournament, status="failed")
        .exclude(skip_code=Trial.SkipCode.UNSUPPORTED_INPUT)
        .count()
    )
    undecided = (
        Match.objects.filter(
            tournament=tournament,
            status=Match.Status.INCONCLUSIVE,
            ballots__jury__primary=True,
            ballots__status=Ballot.Status.FAILED,
        )
        .distinct()
        .count()
    )
    sentences = []
    if failed:
        sentences.append(f"{failed} answers could not be had, and their matches are void.")
    if undecided:
        sentences.append(f"{undecided} matches are inconclusive where calls of judges failed.")
    return sentences
