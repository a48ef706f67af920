"""Recorded runs become finished tournaments with all their evidence. Everything of an upload is stored, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from django.core.files import File
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.ingest import SampleDraft
from arena.ingest.hashing import SetHash
from arena.ingest.recorded import (
    RecordedAnswer,
    RecordedBallot,
    RecordedMatch,
    RecordedModel,
    RecordedRun,
    RunReading,
    read_record,
)
from arena.judging import ballots as pure
from arena.judging.metrics import characters, markdown_density
from arena.judging.protocol import Protocol
from arena.judging.verdict import ParsedVerdict, parse_verdict
from arena.llm.families import guess_family
from arena.llm.text import storable
from arena.models import (
    Ballot,
    CallStatus,
    Candidate,
    Decision,
    Judge,
    Jury,
    LanguageModel,
    Match,
    Price,
    Sample,
    Step,
    TaskSet,
    Team,
    Tournament,
    Trial,
    TrialRequest,
    User,
    Verdict,
)
from arena.services import audit
from arena.services.task_set_files import upload_limits
from arena.services.task_set_spool import SEARCH_CHARACTERS, text_of
from arena.services.tournaments import snapshot_of
from arena.signals import step_finished

BATCH = 200
MAX_NAME = 200
RAW_CHARACTERS = 100_000
NOT_AS_COUNTED = "as recorded, not as the votes count"
CHUNK = 64 * 1024
M = TypeVar("M", bound=models.Model)


class RunError(Exception):
    """Lists everything that stands in the way, not only the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = list(problems)


class RunRefused(RunError):
    """The record has problems. Nothing of it was stored."""

    def __init__(self, reading: RunReading) -> None:
        super().__init__([str(problem) for problem in reading.problems if problem.severity == "error"])
        self.reading = reading


@dataclass(frozen=True)
class ImportedRun:
    tournament: Tournament
    # False: the same evidence was imported before, and this is where.
    is_new: bool


def read_run(path: Path, filename: str = "") -> RunReading:
    """Raises RunError where the operating system does not let the file be read."""
    try:
        return read_record(path, filename or path.resolve().name, limits=upload_limits())
    except FileNotFoundError as error:
        raise RunError([_("%(path)s does not exist.") % {"path": path}]) from error
    except OSError as error:
        raise RunError(
            [_("%(path)s cannot be read: %(reason)s.") % {"path": path, "reason": error.strerror}]
        ) from error


def import_run(
    *, team: Team, path: Path, actor: User | None, name: str = "", filename: str = "", reading: RunReading | None = None
) -> list[ImportedRun]:
    """Every run of a folder, archive or log as a finished tournament. Raises RunRefused with all that is wrong."""
    reading = reading or read_run(path, filename)
    if not reading.clean:
        raise RunRefused(reading)
    source = storable(filename or path.resolve().name)[-255:]
    try:
        imported = _import_all(team, reading.runs, actor, name, source)
    except IntegrityError:
        # Somebody stored the same record at this moment: now it is found.
        imported = _import_all(team, reading.runs, actor, name, source)
    return imported


def import_uploaded(*, team: Team, files: Sequence[File[Any]], actor: User | None) -> list[ImportedRun]:
    """What a browser sent: one archive, or the files of one record side by side."""
    with _side_by_side(files) as (path, filename):
        return import_run(team=team, path=path, actor=actor, filename=filename)


@contextmanager
def _side_by_side(files: Sequence[File[Any]]) -> Iterator[tuple[Path, str]]:
    with TemporaryDirectory(prefix="recorded-run-") as folder:
        names: dict[str, str] = {}
        for file in files:
            # Of a path that a browser sends, only its last part; and nothing that would be another file's name.
            name = Path(storable(file.name or "")).name[-200:]
            if not name or name in (".", "..") or name.casefold() in names:
                raise RunError([_("Two files have the name %(name)s.") % {"name": name}])
            names[name.casefold()] = name
            with (Path(folder) / name).open("wb") as copy:
                for chunk in file.chunks(CHUNK):
                    copy.write(chunk)
        found = list(names.values())
        if len(found) == 1:
            yield Path(folder) / found[0], found[0]
        else:
            yield Path(folder), found[0] if found else ""


@transaction.atomic
def _import_all(
    team: Team, runs: Sequence[RecordedRun], actor: User | None, name: str, source: str
) -> list[ImportedRun]:
    # Names, models and task sets of a team change one after another.
    locked = Team.objects.select_for_update().get(pk=team.pk)
    imported = []
    for number, run in enumerate(runs, 1):
        content_hash = run.content_hash()
        known = Tournament.objects.filter(team=locked, imported_hash=content_hash).first()
        if known is not None:
            imported.append(ImportedRun(known, is_new=False))
            continue
        wanted = name if len(runs) == 1 or not name else f"{name} ({number})"
        tournament = _Importer(locked, run, actor, source).store(wanted, content_hash)
        imported.append(ImportedRun(tournament, is_new=True))
    return imported


@dataclass
class _Importer:
    team: Team
    run: RecordedRun
    actor: User | None
    source: str
    samples: list[Sample] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    judges: dict[tuple[bool, int], Judge] = field(default_factory=dict)
    trials: dict[str, Trial] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)

    def store(self, name: str, content_hash: str) -> Tournament:
        run = self.run
        now = timezone.now()
        task_set = self._task_set()
        self.samples = list(task_set.samples.order_by("position"))
        protocol = Protocol.from_json(run.protocol)
        self.tournament = Tournament.objects.create(
            team=self.team,
            task_set=task_set,
            name=_clean(name) or _("%(name)s (imported)") % {"name": _clean(run.name)[: MAX_NAME - 12]},
            status=Tournament.Status.FINISHED,
            pairing=(run.pairing or "recorded")[:20],
            max_matches=run.planned_matches,
            step_size=max(1, -(-len(run.matches) // max(1, len({match.step for match in run.matches})))),
            # Where it is not known nothing can be drawn again from it; the manifest then says so.
            seed=run.seed or 0,
            settings={"imported": self._about()},
            imported_hash=content_hash,
            created_by=self.actor,
            started_at=run.started_at,
            finished_at=run.finished_at or now,
        )
        self._enter()
        self.jury = Jury.objects.create(
            tournament=self.tournament, primary=True, status=Jury.Status.FINISHED, protocol=protocol.to_json()
        )
        self._seat()
        self._store_trials()
        self._store_steps()
        self._store_matches(protocol)
        audit.record(
            team=self.team,
            actor=self.actor,
            action="tournament.import",
            target=self.tournament.name,
            new={"source": run.source, "file": self.source, "matches": len(run.matches), "content_hash": content_hash},
        )
        self._tell_boards()
        return self.tournament

    def _about(self) -> dict[str, Any]:
        run = self.run
        return {
            "source": run.source,
            "source_id": run.source_id,
            "file": self.source,
            "pairing": run.pairing or None,
            "seed": run.seed,
            "recorded": run.recorded,
            "not_recorded": list(run.not_recorded),
        }

    # Task set --------------------------------------------------------------------------------------------
    def _task_set(self) -> TaskSet:
        drafts = self.run.samples
        digest = SetHash()
        for draft in drafts:
            digest.add(draft.key, draft.content_hash)
        content_hash = digest.hexdigest()
        known = TaskSet.objects.filter(team=self.team, content_hash=content_hash).order_by("-pk").first()
        if known is not None and known.samples.count() == len(drafts):
            return known
        task_set = TaskSet.objects.create(
            team=self.team,
            name=_free_name(self.team, _clean(self.run.task_set_name) or _("Imported prompts")),
            description=_("The prompts of a recorded run."),
            source_name=self.source,
            content_hash=content_hash,
            sample_count=len(drafts),
            created_by=self.actor,
        )
        _insert(Sample, (_sample(task_set, draft) for draft in drafts))
        audit.record(
            team=self.team,
            actor=self.actor,
            action="task_set.create",
            target=str(task_set),
            new={"samples": len(drafts), "content_hash": content_hash, "source": self.source},
        )
        return task_set

    # Models ----------------------------------------------------------------------------------------------
    def _enter(self) -> None:
        for position, recorded in enumerate(self.run.candidates):
            model = self._model(recorded)
            self.candidates.append(
                Candidate.objects.create(
                    tournament=self.tournament,
                    language_model=model,
                    position=position,
                    label=_label(recorded, self.run.candidates),
                    full_id=recorded.full_id,
                    snapshot=_snapshot(model, recorded),
                )
            )

    def _seat(self) -> None:
        panels = ((self.run.judges, False), (self.run.replacement_judges, True))
        seated: set[int] = set()
        for models_of, replacement in panels:
            for position, recorded in enumerate(models_of):
                model = self._model(recorded, apart_from=seated)
                seated.add(model.pk)
                self.judges[replacement, position] = Judge.objects.create(
                    jury=self.jury,
                    language_model=model,
                    position=position,
                    replacement=replacement,
                    label=_label(recorded, [*self.run.judges, *self.run.replacement_judges]),
                    full_id=recorded.full_id,
                    snapshot=_snapshot(model, recorded),
                )

    def _model(self, recorded: RecordedModel, apart_from: Iterable[int] = ()) -> LanguageModel:
        """The team's model of this id and these parameters whose answers are imported; a new one if there is none."""
        model = LanguageModel(
            team=self.team,
            provider=None,
            model_id=recorded.full_id,
            display_name=recorded.label,
            family=guess_family(recorded.full_id),
            parameters=recorded.parameters,
        )
        model.fingerprint = model.compute_fingerprint()
        known = (
            LanguageModel.objects.current()
            .filter(team=self.team, provider=None, fingerprint=model.fingerprint)
            .exclude(pk__in=list(apart_from))
            .first()
        )
        if known is not None:
            return known
        model.save()
        if recorded.price is not None:
            Price.objects.create(
                language_model=model,
                input_per_million=recorded.price.input_per_million,
                output_per_million=recorded.price.output_per_million,
                source=recorded.price.source,
                valid_from=(self.run.started_at or timezone.now()).date(),
            )
        audit.record(
            team=self.team,
            actor=self.actor,
            action="language_model.create",
            target=model.full_id,
            new={"model_id": model.model_id, "source": self.source},
        )
        return model

    # Evidence --------------------------------------------------------------------------------------------
    def _store_trials(self) -> None:
        seen: dict[tuple[int, int], int] = {}
        rows = []
        for answer in self.run.answers:
            cell = (answer.sample, answer.model)
            replicate = seen.get(cell, 0)
            seen[cell] = replicate + 1
            rows.append(self._trial(answer, replicate))
        _insert(Trial, rows)
        self.trials = {answer.key: row for answer, row in zip(self.run.answers, rows, strict=True)}
        _insert(TrialRequest, (TrialRequest(tournament=self.tournament, trial=row) for row in rows))

    def _trial(self, answer: RecordedAnswer, replicate: int) -> Trial:
        sample, model = self.samples[answer.sample], self.candidates[answer.model].language_model
        return Trial(
            team=self.team,
            language_model=model,
            sample=sample,
            payer=None,
            input_hash=sample.input_hash,
            fingerprint=model.fingerprint,
            origin=Trial.Origin.IMPORTED,
            replicate=replicate,
            status=CallStatus.FAILED if answer.failed else CallStatus.SUCCEEDED,
            skip_code=answer.skip_code,
            answer="" if answer.failed else answer.text,
            partial_answer=answer.text if answer.failed else "",
            error=answer.error,
            truncated=answer.truncated,
            finish_reason=answer.finish_reason,
            characters=None if answer.failed else characters(answer.text),
            markdown_density=None if answer.failed else markdown_density(answer.text),
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            reasoning_tokens=answer.reasoning_tokens,
            cost_usd=answer.cost_usd,
            ttft_ms=answer.ttft_ms,
            duration_ms=answer.duration_ms,
        )

    def _store_steps(self) -> None:
        numbers = sorted({match.step for match in self.run.matches})
        done = Step.Status.COMPLETE
        for number in numbers:
            moments = [m.decided_at for m in self.run.matches if m.step == number and m.decided_at]
            self.steps[number] = Step(
                tournament=self.tournament, number=number, status=done, completed_at=max(moments, default=None)
            )
        _insert(Step, self.steps.values())

    def _store_matches(self, protocol: Protocol) -> None:
        rows = [self._match(match) for match in self.run.matches]
        _insert(Match, rows)
        ballots: list[Ballot] = []
        verdicts: list[Verdict] = []
        decisions: list[Decision] = []
        for match, row in zip(self.run.matches, rows, strict=True):
            of_match = []
            for recorded in match.ballots:
                ballot, verdict = self._ballot(recorded, match, row, protocol)
                of_match.append(ballot)
                if verdict is not None:
                    verdicts.append(verdict)
            ballots += of_match
            if match.outcome is not None:
                decisions.append(self._decision(match, row, of_match, protocol))
        _insert(Ballot, ballots)
        _insert(Verdict, verdicts)
        _insert(Decision, decisions)
        for decision in decisions:
            decision.created_at = decision.match.decided_at or decision.created_at
        # Decisions were made when the record says, not when they were stored.
        Decision.objects.bulk_update(decisions, ["created_at"], batch_size=BATCH)

    def _match(self, match: RecordedMatch) -> Match:
        swapped = self._is_swapped(match)
        first, second = (match.b, match.a) if swapped else (match.a, match.b)
        one, other = (match.answer_b, match.answer_a) if swapped else (match.answer_a, match.answer_b)
        conclusive = match.outcome not in (None, "inconclusive")
        status = Match.Status.DECIDED if conclusive else Match.Status.INCONCLUSIVE
        return Match(
            tournament=self.tournament,
            step=self.steps[match.step],
            sequence=match.sequence,
            sample=self.samples[match.sample],
            first=self.candidates[first],
            second=self.candidates[second],
            first_trial=self.trials[one],
            second_trial=self.trials[other],
            status=Match.Status.VOID if match.outcome is None else status,
            forced_tie=match.forced_tie,
            imported=True,
            decided_at=match.decided_at,
            recorded={key: value for key, value in match.recorded.items() if value is not None},
        )

    def _is_swapped(self, match: RecordedMatch) -> bool:
        """A match names its candidates in the order in which they entered."""
        return match.a > match.b

    def _side(self, match: RecordedMatch, side: str | None) -> str:
        if side in (None, "tie", "inconclusive"):
            return side or ""
        return "first" if (side == "a") != self._is_swapped(match) else "second"

    def _ballot(
        self, recorded: RecordedBallot, match: RecordedMatch, row: Match, protocol: Protocol
    ) -> tuple[Ballot, Verdict | None]:
        judge = self.judges[recorded.replacement, recorded.judge]
        vote = self._side(match, recorded.vote)
        ballot = Ballot(
            jury=self.jury,
            match=row,
            judge=judge,
            status=recorded.status,
            vote=vote,
            flipped=recorded.flipped,
            explanation=recorded.explanation,
        )
        if recorded.raw is None or match.a_sat_first is None:
            return ballot, None
        parsed = parse_verdict(recorded.raw)
        if not isinstance(parsed, ParsedVerdict) and recorded.vote == "tie":
            # The record writes a tie for a call that gave no verdict.
            ballot.status = Ballot.Status.FAILED
            ballot.vote = "tie" if protocol.on_error == "tie" else ""
        return ballot, self._verdict(recorded, match, row, ballot, parsed)

    def _verdict(
        self, recorded: RecordedBallot, match: RecordedMatch, row: Match, ballot: Ballot, parsed: Any
    ) -> Verdict:
        first_in_a = bool(match.a_sat_first) != self._is_swapped(match)
        verdict = Verdict(
            ballot=ballot,
            match=row,
            tournament=self.tournament,
            seat_order=Verdict.SeatOrder.FIRST_IN_A if first_in_a else Verdict.SeatOrder.SECOND_IN_A,
            raw=(recorded.raw or "")[:RAW_CHARACTERS],
            finished_at=match.decided_at,
        )
        if ballot.status == Ballot.Status.FAILED:
            verdict.status, verdict.error_code, verdict.error = CallStatus.FAILED, parsed.code.value, parsed.message
            return verdict
        seats = {"a": "A", "b": "B"} if match.a_sat_first else {"a": "B", "b": "A"}
        verdict.status = CallStatus.SUCCEEDED
        verdict.winner = seats.get(recorded.vote or "", "tie")
        verdict.vote = ballot.vote
        if isinstance(parsed, ParsedVerdict) and parsed.winner == verdict.winner:
            verdict.comment_a, verdict.comment_b, verdict.reason = parsed.comment_a, parsed.comment_b, parsed.reason
        return verdict

    def _decision(self, match: RecordedMatch, row: Match, ballots: Sequence[Ballot], protocol: Protocol) -> Decision:
        panel = len(self.run.judges)
        result = pure.decide(
            [
                pure.Ballot(
                    judge_id=ballot.judge_id,
                    position=ballot.judge.position + (panel if ballot.judge.replacement else 0),
                    status=pure.BallotStatus(str(ballot.status)),
                    vote=pure.Vote(ballot.vote) if ballot.vote else None,
                )
                for ballot in ballots
            ],
            protocol,
        )
        outcome = self._side(match, match.outcome)
        agrees = result.outcome.value == outcome
        return Decision(
            jury=self.jury,
            match=row,
            outcome=outcome,
            reason=result.reason.value if agrees else NOT_AS_COUNTED,
            counts=asdict(result.counts),
        )

    def _tell_boards(self) -> None:
        last = max(self.steps, default=None)
        if last is not None:
            hint = partial(step_finished.send, sender=Step, tournament_id=self.tournament.pk, step_number=last)
            # Only a hint: boards find what is due from the rows at their next look.
            transaction.on_commit(hint, robust=True)


def _sample(task_set: TaskSet, draft: SampleDraft) -> Sample:
    return Sample(
        task_set=task_set,
        position=draft.position,
        key=draft.key,
        messages=draft.messages,
        category=draft.category,
        reference=draft.reference,
        criteria=draft.criteria,
        tags=list(draft.tags),
        metadata=draft.metadata,
        json_schema=draft.json_schema,
        input_hash=draft.input_hash,
        content_hash=draft.content_hash,
        search_text=text_of(draft.messages, SEARCH_CHARACTERS),
    )


def _label(recorded: RecordedModel, others: Sequence[RecordedModel]) -> str:
    same = [other for other in others if other.label == recorded.label]
    return recorded.label if len(same) == 1 else recorded.full_id


def _snapshot(model: LanguageModel, recorded: RecordedModel) -> dict[str, Any]:
    price = recorded.price
    return snapshot_of(model) | {
        "full_id": recorded.full_id,
        "price": None
        if price is None
        else {
            "input_per_million": format(price.input_per_million, "f"),
            "output_per_million": format(price.output_per_million, "f"),
            "source": price.source,
            "valid_from": None,
        },
    }


def _insert(model: type[M], rows: Iterable[M]) -> None:
    """In batches that neither hold too many parameters nor too much text for one statement."""
    most = connection.features.max_query_params
    size = min(BATCH, max(1, most // len(model._meta.fields))) if most else BATCH
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        model._default_manager.bulk_create(batch)


def _free_name(team: Team, name: str) -> str:
    taken = {
        known.casefold() for known in TaskSet.objects.filter(team=team).newest_versions().values_list("name", flat=True)
    }
    numbered = (f"{name} ({number})" for number in range(2, len(taken) + 3))
    return next(choice for choice in (name, *numbered) if choice.casefold() not in taken)


def _clean(name: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[: MAX_NAME - 20]
