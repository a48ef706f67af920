"""votes.jsonl becomes a closed campaign over a tournament of its own: everything of the file, or nothing."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext as _

from annotation.datasets import Row, fingerprint_of, model_order, read_votes
from annotation.models import Assignment, Campaign, CampaignItem, GoldItem, Rater, Vote
from annotation.services.pools import answers_key
from arena.ingest.types import Problem
from arena.judging.metrics import characters, markdown_density
from arena.judging.protocol import AUDITED
from arena.llm.families import guess_family
from arena.models import (
    CallStatus,
    Candidate,
    Jury,
    LanguageModel,
    Match,
    Sample,
    Step,
    TaskSet,
    Team,
    Tournament,
    Trial,
    TrialRequest,
    User,
)
from arena.services import audit
from arena.services.tournaments import snapshot_of
from arena.tokens import hash_token, make_token

BATCH = 50
M = TypeVar("M", bound=models.Model)


class VotesRefused(Exception):
    """Lists everything that is wrong with the files. Nothing was stored."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(map(str, problems)))
        self.problems = list(problems)


class ImportedVotes(NamedTuple):
    """`is_new` is False where the same votes were read before, and `campaign` is where."""

    campaign: Campaign
    votes: int
    is_new: bool


def import_votes(*, team: Team, path: Path, actor: User | None = None, name: str = "") -> ImportedVotes:
    """Read a votes.jsonl that was exported without a filter. Raises VotesRefused with all that is wrong."""
    try:
        with path.open("rb") as lines:
            rows, problems = read_votes(lines, path.name)
    except OSError as error:
        problems = [Problem(str(path), None, None, f"The file cannot be read: {error.strerror}.")]
    if problems:
        raise VotesRefused(problems)
    fingerprint = fingerprint_of(rows)
    try:
        with transaction.atomic():
            # Names, models and task sets of a team change one after another.
            locked = Team.objects.select_for_update().get(pk=team.pk)
            known = Campaign.objects.filter(team=locked, imported_hash=fingerprint).first()
            if known is not None:
                return ImportedVotes(known, len(rows), is_new=False)
            campaign = _Importer(locked, rows, actor, path.name).store(name, fingerprint)
    except IntegrityError as error:
        message = f"The votes contradict each other, so the database took none of them: {error}."
        raise VotesRefused([Problem(path.name, None, None, message)]) from error
    return ImportedVotes(campaign, len(rows), is_new=True)


def _insert(model: type[M], rows: Iterable[M]) -> None:
    model._default_manager.bulk_create(rows, batch_size=BATCH)


@dataclass
class _Importer:
    team: Team
    rows: Sequence[Row]
    actor: User | None
    source: str
    samples: dict[str, Sample] = field(default_factory=dict)
    matches: dict[str, Match] = field(default_factory=dict)
    items: dict[str, CampaignItem] = field(default_factory=dict)
    gold: dict[tuple[str, ...], GoldItem] = field(default_factory=dict)
    raters: dict[str, Rater] = field(default_factory=dict)
    assignments: dict[str, Assignment] = field(default_factory=dict)

    def store(self, name: str, fingerprint: str) -> Campaign:
        first = self.rows[0]
        self.name = (name or _("%(name)s (imported)") % {"name": first["campaign_name"][:150]})[:200]
        moments = [_moment(row["created_at"]) for row in self.rows]
        task_set = self._task_set(fingerprint)
        self._tournament(task_set, moments)
        self.campaign = Campaign.objects.create(
            team=self.team,
            name=self.name,
            status=Campaign.Status.CLOSED,
            raters_per_pair=first["votes_per_match"],
            created_by=self.actor,
            opened_at=min(moments),
            closed_at=max(moments),
            imported_hash=fingerprint,
        )
        self.campaign.tournaments.set([self.tournament])
        self._pool()
        self._raters()
        self._assignments()
        self._votes()
        new = {"file": self.source, "votes": len(self.rows)}
        audit.record(team=self.team, actor=self.actor, action="campaign.import", target=self.name, new=new)
        return self.campaign

    # What was compared -----------------------------------------------------------------------------------
    def _task_set(self, fingerprint: str) -> TaskSet:
        prompts = {row["prompt_hash"]: row for row in self.rows}
        task_set = TaskSet.objects.create(
            team=self.team,
            name=self.name,
            description=_("The prompts of imported votes. Files were not part of the export."),
            source_name=self.source[-255:],
            content_hash=fingerprint,
            sample_count=len(prompts),
            created_by=self.actor,
        )
        keys = Counter(row["sample_key"] for row in prompts.values())
        rows = [
            Sample(
                task_set=task_set,
                position=position,
                # The same key in two task sets is two prompts here.
                key=(row["sample_key"] if keys[row["sample_key"]] == 1 else f"{row['sample_key'][:150]}-{position}")[
                    :200
                ],
                messages=row["prompt"],
                category=row["category"][:200],
                input_hash=prompt_hash[:64],
                content_hash=prompt_hash[:64],
                search_text=row["prompt"][-1]["content"][:2000],
            )
            for position, (prompt_hash, row) in enumerate(prompts.items())
        ]
        _insert(Sample, rows)
        self.samples = dict(zip(prompts, rows, strict=True))
        return task_set

    def _tournament(self, task_set: TaskSet, moments: Sequence[dt.datetime]) -> None:
        pairs = {row["match"]: row for row in self.rows if row["match"] is not None}
        self.tournament = Tournament.objects.create(
            team=self.team,
            task_set=task_set,
            name=self.name,
            status=Tournament.Status.FINISHED,
            max_matches=max(1, len(pairs)),
            step_size=max(1, len(pairs)),
            settings={"imported": {"source": "votes.jsonl", "file": self.source}},
            created_by=self.actor,
            started_at=min(moments),
            finished_at=max(moments),
        )
        # No decision of a jury is in the file; the jury that every tournament has is an empty one.
        Jury.objects.create(tournament=self.tournament, status=Jury.Status.FINISHED, protocol=AUDITED.to_json())
        names = model_order(self.rows)
        candidates = {name: self._candidate(position, name) for position, name in enumerate(names)}
        step = Step.objects.create(
            tournament=self.tournament, number=1, status=Step.Status.COMPLETE, completed_at=max(moments)
        )
        trials = self._trials(pairs, candidates)
        for sequence, (key, row) in enumerate(pairs.items(), 1):
            self.matches[key] = Match(
                tournament=self.tournament,
                step=step,
                sequence=sequence,
                sample=self.samples[row["prompt_hash"]],
                first=candidates[row["first_model"]],
                second=candidates[row["second_model"]],
                first_trial=trials[_cell(row, "first")],
                second_trial=trials[_cell(row, "second")],
                status=Match.Status.INCONCLUSIVE,
                imported=True,
            )
        _insert(Match, self.matches.values())

    def _candidate(self, position: int, full_id: str) -> Candidate:
        model = LanguageModel(
            team=self.team, provider=None, model_id=full_id, display_name=full_id[:200], family=guess_family(full_id)
        )
        model.fingerprint = model.compute_fingerprint()
        known = (
            LanguageModel.objects.current().filter(team=self.team, provider=None, fingerprint=model.fingerprint).first()
        )
        if known is None:
            model.save()
        used = known or model
        return Candidate.objects.create(
            tournament=self.tournament,
            language_model=used,
            position=position,
            label=full_id,
            full_id=full_id,
            snapshot=snapshot_of(used) | {"full_id": full_id, "price": None},
        )

    def _trials(self, pairs: dict[str, Row], candidates: dict[str, Candidate]) -> dict[tuple[str, ...], Trial]:
        trials: dict[tuple[str, ...], Trial] = {}
        replicates: Counter[tuple[str, str]] = Counter()
        for row in pairs.values():
            for side in ("first", "second"):
                cell = _cell(row, side)
                if cell in trials:
                    continue
                model, prompt_hash, text = cell
                trials[cell] = Trial(
                    team=self.team,
                    language_model=candidates[model].language_model,
                    sample=self.samples[prompt_hash],
                    input_hash=prompt_hash[:64],
                    fingerprint=candidates[model].language_model.fingerprint,
                    origin=Trial.Origin.IMPORTED,
                    replicate=replicates[model, prompt_hash],
                    status=CallStatus.SUCCEEDED,
                    answer=text,
                    characters=characters(text),
                    markdown_density=markdown_density(text),
                )
                replicates[model, prompt_hash] += 1
        _insert(Trial, trials.values())
        _insert(TrialRequest, (TrialRequest(tournament=self.tournament, trial=trial) for trial in trials.values()))
        return trials

    # What was said ---------------------------------------------------------------------------------------
    def _pool(self) -> None:
        for row in self.rows:
            if row["match"] is None:
                key = _gold_key(row)
                if key not in self.gold:
                    self.gold[key] = self._gold_item(row)
            elif row["match"] not in self.items:
                self.items[row["match"]] = self._item(row)
        for row in {row["assignment"]: row for row in self.rows if row["kind"] == "normal"}.values():
            item = self.items[row["match"]]
            used = "first_left" if row["left"] == "first" else "second_left"
            setattr(item, used, getattr(item, used) + 1)
        for row in self.rows:
            if row["is_current"] and row["place"] is not None:
                self.items[row["match"]].counted += 1
        _insert(GoldItem, self.gold.values())
        _insert(CampaignItem, self.items.values())

    def _gold_item(self, row: Row) -> GoldItem:
        return GoldItem(
            campaign=self.campaign,
            sample=self.samples[row["prompt_hash"]],
            first_text=row["first_answer"],
            second_text=row["second_answer"],
            expected=row["gold_expected"],
            origin=row["gold_origin"],
        )

    def _item(self, row: Row) -> CampaignItem:
        match = self.matches[row["match"]]
        return CampaignItem(
            campaign=self.campaign,
            match=match,
            state=CampaignItem.State.CLEAN,
            answers_key=_answers_key(row),
            first_model=match.first.language_model,
            second_model=match.second.language_model,
        )

    def _raters(self) -> None:
        answered = Counter(
            row["rater"] for row in self.rows if row["is_current"] and row["choice"] != Vote.Choice.UNDONE
        )
        for row in self.rows:
            left_out = Rater.Screening.EXCLUDED if row["rater_left_out"] else Rater.Screening.AUTOMATIC
            self.raters[row["rater"]] = Rater(
                campaign=self.campaign,
                label=row["rater"][:200],
                # A cookie that nobody has: an imported rater never comes back.
                session=hash_token(make_token()),
                origin=Rater.Origin.IMPORTED,
                screening=left_out,
                could_see_names=row["could_see_names"],
                answered=answered[row["rater"]],
            )
        _insert(Rater, self.raters.values())

    def _assignments(self) -> None:
        newest = {row["assignment"]: row for row in self.rows}
        order = sorted(newest.values(), key=lambda row: row["repeat_of"] is not None)
        for repeats in (False, True):
            made = [self._assignment(row) for row in order if (row["repeat_of"] is not None) == repeats]
            keys = [row["assignment"] for row in order if (row["repeat_of"] is not None) == repeats]
            _insert(Assignment, made)
            self.assignments |= dict(zip(keys, made, strict=True))
        for key, assignment in self.assignments.items():
            assignment.served_at = _moment(newest[key]["served_at"])
        Assignment.objects.bulk_update(self.assignments.values(), ["served_at"], batch_size=BATCH)

    def _assignment(self, row: Row) -> Assignment:
        served = _moment(row["served_at"])
        original = row["repeat_of"]
        return Assignment(
            campaign=self.campaign,
            rater=self.raters[row["rater"]],
            kind=row["kind"],
            item=self.items.get(row["match"] or ""),
            match=self.matches.get(row["match"] or ""),
            gold_item=self.gold[_gold_key(row)] if row["match"] is None else None,
            repeat_of=None if original is None else self.assignments[original],
            answers_key=_answers_key(row),
            left=row["left"],
            right="second" if row["left"] == "first" else "first",
            position=row["position"],
            lease_until=served,
            answered=row["is_current"] and row["choice"] != Vote.Choice.UNDONE,
        )

    def _votes(self) -> None:
        votes = {row["id"]: self._vote(row) for row in self.rows}
        _insert(Vote, votes.values())
        for row in self.rows:
            vote = votes[row["id"]]
            vote.created_at = _moment(row["created_at"])
            vote.supersedes = votes[row["supersedes"]] if row["supersedes"] is not None else None
        Vote.objects.bulk_update(votes.values(), ["created_at", "supersedes"], batch_size=BATCH)

    def _vote(self, row: Row) -> Vote:
        assignment = self.assignments[row["assignment"]]
        return Vote(
            assignment=assignment,
            campaign=self.campaign,
            rater=assignment.rater,
            match=assignment.match,
            places=row["votes_per_match"],
            idempotency_key=row["id"][:64],
            **{name: row[name] for name in _COPIED},
        )


_COPIED = (
    "choice", "outcome", "standing", "place", "first_tags", "second_tags", "first_comment", "second_comment", "reason",
    "note", "is_current", "could_see_names", "active_ms", "guideline_version",
)  # fmt: skip


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _cell(row: Row, side: str) -> tuple[str, str, str]:
    return row[f"{side}_model"], row["prompt_hash"], row[f"{side}_answer"]


def _gold_key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ("prompt_hash", "first_answer", "second_answer", "gold_origin", "gold_expected"))


def _answers_key(row: Row) -> str:
    return answers_key(row["prompt_hash"], [row["first_answer"], row["second_answer"]])
