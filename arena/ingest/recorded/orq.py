"""Logs of orq-arena: one JSON object a round, and beside it the manifest of the run (`NAME.run.json`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from arena.ingest.dialects import ORQ_ARENA, RawSample
from arena.ingest.hashing import hash_json
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.recorded.trees import Tree, parse
from arena.ingest.recorded.types import (
    Outcome,
    RecordedAnswer,
    RecordedBallot,
    RecordedMatch,
    RecordedModel,
    RecordedPrice,
    RecordedRun,
    Side,
    SkipCode,
)
from arena.ingest.recorded.values import MAX_SEED, Values
from arena.ingest.samples import SampleReader
from arena.ingest.types import Limits, SampleDraft

SOURCE = "orq-arena"
LEAST_SCHEMA = 3
MANIFEST_BYTES = 1024 * 1024
CUT_FINISHES = frozenset({"length", "max_tokens"})
MILLION = Decimal(1_000_000)
CENT_FRACTION = Decimal("0.00000001")
_SIDES: dict[str, Side] = {"A": "a", "B": "b", "tie": "tie"}


def is_log_name(path: str) -> bool:
    return path.endswith((".jsonl", ".ndjson"))


def read_log(tree: Tree, path: str) -> RecordedRun | None:
    """The run of one log, or None after the log of problems was told."""
    return _Log(tree, path).read()


@dataclass(slots=True)
class _Roster:
    """Models in the order in which they were first named."""

    ids: dict[str, int] = field(default_factory=dict)

    def place(self, full_id: str) -> int:
        return self.ids.setdefault(full_id, len(self.ids))


class _Log:
    def __init__(self, tree: Tree, path: str) -> None:
        self._tree, self._path = tree, path
        self._log: ProblemLog = tree.log
        self._limits: Limits = tree.limits
        self._manifest: dict[str, Any] = {}
        # Short name -> full id, as the manifest pairs them.
        self._full_ids: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._candidates, self._judges, self._stand_ins = _Roster(), _Roster(), _Roster()
        self._samples: dict[str, SampleDraft] = {}
        self._texts: dict[str, str] = {}
        self._answers: list[RecordedAnswer] = []
        self._matches: list[RecordedMatch] = []
        self._steps: dict[str, int] = {}
        self._rounds: dict[str, int | None] = {}
        self._tournament = ""
        self._prices: dict[str, RecordedPrice] = {}

    def read(self) -> RecordedRun | None:
        before = self._log.error_count
        self._read_manifest()
        for line, value in self._records():
            self._round(Values(value, self._log, file=self._path, line=line))
        if not self._matches and self._log.error_count == before:
            self._log.error("holds no rounds", file=self._path)
        return self._run() if self._log.error_count == before else None

    # The manifest ----------------------------------------------------------------------------------------
    def _read_manifest(self) -> None:
        name = f"{self._path.rsplit('.', 1)[0]}.run.json"
        if name not in self._tree.paths():
            self._log.warn(
                f"has no {clip(name.rsplit('/', 1)[-1], 120)} beside it: prices, seed and panel are not known",
                file=self._path,
            )
            return
        text = self._tree.text(name)
        if text is None:
            return
        if len(text.encode()) > MANIFEST_BYTES:
            self._log.error(f"is larger than {MANIFEST_BYTES:,} bytes", file=name)
            return
        before = self._log.error_count
        value = parse(text, self._log, file=name)
        if self._log.error_count > before:
            return
        manifest = Values(value, self._log, file=name)
        self._manifest = manifest.raw
        self._tournament = manifest.name("tournament_id") if manifest.raw else ""
        self._read_roster(manifest)
        self._read_prices(manifest)

    def _read_roster(self, manifest: Values) -> None:
        candidates = manifest.of("candidates")
        for label in candidates.raw:
            entry = candidates.of(label)
            full_id = entry.name("model")
            if full_id in self._candidates.ids:
                entry.error("model", f"{clip(full_id)!r} is named twice")
            self._full_ids[label] = full_id
            self._labels[full_id] = clip(label, 200)
            self._candidates.place(full_id)
        for full_id in manifest.names("judges"):
            self._judges.place(full_id)
        if "replacement_judges" in manifest.raw:
            for full_id in manifest.names("replacement_judges"):
                self._stand_ins.place(full_id)

    def _read_prices(self, manifest: Values) -> None:
        preflight = manifest.raw.get("preflight")
        ceiling = preflight.get("cost_ceiling") if isinstance(preflight, dict) else None
        if not isinstance(ceiling, dict) or "rows" not in ceiling:
            return
        rows = manifest.child(ceiling, "preflight.cost_ceiling")
        for i, value in enumerate(rows.items("rows")):
            row = rows.child(value, f"rows[{i}]")
            price_in, price_out = row.usd("price_in"), row.usd("price_out")
            if price_in is not None and price_out is not None:
                source = clip(f"recorded in {self._path.rsplit('/', 1)[-1].rsplit('.', 1)[0]}.run.json", 200)
                self._prices[row.name("model_id")] = RecordedPrice(price_in, price_out, source)

    # Rounds ----------------------------------------------------------------------------------------------
    def _records(self) -> Iterator[tuple[int, Any]]:
        count = 0
        for line in self._tree.lines(self._path):
            if line.problem:
                self._log.error(line.problem, file=self._path, line=line.number)
                continue
            if not line.text.strip():
                continue
            count += 1
            if count > MAX_ROUNDS:
                self._log.error(f"holds more than {MAX_ROUNDS:,} rounds", file=self._path, line=line.number)
                return
            before = self._log.error_count
            value = parse(line.text, self._log, file=self._path, line=line.number)
            if self._log.error_count == before:
                yield line.number, value

    def _round(self, row: Values) -> None:
        before = self._log.error_count
        self._check_schema(row)
        source_match, number = row.name("match_id"), row.count("round_number")
        step = self._steps.setdefault(source_match, len(self._steps) + 1)
        self._check_once(row, source_match)
        sample = self._sample(row)
        sides = {side: self._candidate(row, side) for side in ("a", "b")}
        if sides["a"] == sides["b"]:
            row.error("model_b", "is the model of model_a")
        error = row.text("error")
        answers = {side: self._answer(row, side, sides[side], sample, error) for side in ("a", "b")}
        is_void = any(answer.failed for answer in answers.values())
        votes = row.items("judge_votes")
        ballots = [self._ballot(row.child(value, f"judge_votes[{i}]")) for i, value in enumerate(votes)]
        outcome = None if is_void else self._outcome(row)
        self._check_judges(row, ballots)
        if self._log.error_count > before:
            return
        self._answers += answers.values()
        self._matches.append(
            RecordedMatch(
                file=self._path,
                line=row.line,
                sequence=len(self._matches) + 1,
                step=step,
                sample=sample,
                a=sides["a"],
                b=sides["b"],
                answer_a=answers["a"].key,
                answer_b=answers["b"].key,
                ballots=tuple(ballots),
                outcome=outcome,
                a_sat_first=None,
                decided_at=row.moment("timestamp"),
                recorded={
                    "match_id": source_match,
                    "round_number": number,
                    "judge_tokens_in": row.count("judge_tokens_in"),
                    "judge_tokens_out": row.count("judge_tokens_out"),
                },
            )
        )

    def _check_schema(self, row: Values) -> None:
        version = row.count("schema_version")
        if version is None or version < LEAST_SCHEMA:
            row.error("schema_version", f"must be {LEAST_SCHEMA} or higher: earlier logs lack answers or votes")
        tournament = row.name("tournament_id")
        self._tournament = self._tournament or tournament
        if tournament and tournament != self._tournament:
            row.error("tournament_id", f"is {clip(tournament)!r}; the others are of {clip(self._tournament)!r}")

    def _check_once(self, row: Values, source_match: str) -> None:
        # Rounds without a result keep their number, so the number alone tells no two apart.
        names = ("round_number", "prompt_hash", "timestamp", "response_a", "response_b")
        identity = hash_json([source_match, *(row.raw.get(name) for name in names)])
        first = self._rounds.setdefault(identity, row.line)
        if first != row.line:
            row.error(None, f"is the same round of {clip(source_match)!r} as line {first}")

    def _sample(self, row: Values) -> int:
        key = row.name("prompt_hash")
        text = row.text("prompt_text", required=True)
        if key in self._samples:
            if self._texts[key] != text:
                row.error("prompt_text", f"is another text than that of {clip(key)!r} before")
            return self._samples[key].position
        labels = {
            "id": key or None,
            "category": row.raw.get("prompt_category"),
            "metadata": row.raw.get("prompt_metadata"),
        }
        names = {"id": "prompt_hash", "category": "prompt_category", "metadata": "prompt_metadata"}
        messages = [{"role": "user", "content": text}]
        raw = RawSample(ORQ_ARENA, messages, "prompt_text", labels, {}, names, ("prompt_text",))
        reader = SampleReader(
            raw,
            error=lambda field, message: row.error(field, message),
            warn=lambda field, message: row.warn(field, message),
            image_bytes=self._limits.image_bytes,
        )
        position = len(self._samples)
        self._samples[key] = reader.draft(position=position, key=key, line=row.line, attachments={})
        self._texts[key] = text
        return position

    def _candidate(self, row: Values, side: str) -> int:
        label = row.name(f"model_{side}")
        named = row.name(f"model_{side}_id") if row.raw.get(f"model_{side}_id") is not None else ""
        full_id = named or self._full_ids.get(label, "")
        if not full_id:
            if self._full_ids:
                row.error(f"model_{side}", f"{clip(label)!r} is no candidate of the manifest")
            full_id = label
        self._labels.setdefault(full_id, label)
        return self._candidates.place(full_id)

    def _answer(self, row: Values, side: str, model: int, sample: int, error: str) -> RecordedAnswer:
        text = row.text(f"response_{side}")
        own_error = row.text(f"error_{side}")
        skip: SkipCode = ""
        if own_error or row.raw.get(f"response_{side}") is None:
            skip = "API_ERROR"
        elif not text.strip():
            skip = "EMPTY_ANSWER"
        finish = row.text(f"finish_reason_{side}")[:60]
        tokens_in, tokens_out = row.count(f"tokens_{side}_in"), row.count(f"tokens_{side}_out")
        return RecordedAnswer(
            key=f"{len(self._matches) + 1}{side}",
            model=model,
            sample=sample,
            text=text or row.text(f"partial_response_{side}"),
            skip_code=skip,
            error=(own_error or error or "The record has no answer.") if skip else "",
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            reasoning_tokens=row.count(f"tokens_{side}_reasoning"),
            cost_usd=self._cost(model, tokens_in, tokens_out),
            ttft_ms=row.milliseconds(f"ttft_{side}_ms"),
            duration_ms=row.milliseconds(f"duration_{side}_ms"),
            finish_reason=finish,
            truncated=finish in CUT_FINISHES,
        )

    def _cost(self, model: int, tokens_in: int | None, tokens_out: int | None) -> Decimal | None:
        full_id = next((name for name, place in self._candidates.ids.items() if place == model), "")
        price = self._prices.get(full_id)
        if price is None or tokens_in is None or tokens_out is None:
            return None
        cost = (tokens_in * price.input_per_million + tokens_out * price.output_per_million) / MILLION
        return cost.quantize(CENT_FRACTION)

    def _ballot(self, vote: Values) -> RecordedBallot:
        full_id = vote.name("model")
        replacement = vote.flag("replacement")
        roster = self._stand_ins if replacement else self._judges
        if self._manifest and full_id not in roster.ids:
            vote.error("model", f"{clip(full_id)!r} is no {'stand-in' if replacement else 'judge'} of the manifest")
        word = "" if vote.raw.get("vote") is None else vote.choice("vote", ("A", "B", "tie"))
        flipped, completed = vote.flag("flipped"), vote.flag("completed", default=True)
        if word and (flipped or not completed):
            vote.error("vote", "stands beside a flip or a call that failed")
        status = "vote" if word else "abstained" if completed else "failed"
        return RecordedBallot(
            judge=roster.place(full_id),
            status=status,  # type: ignore[arg-type]  # One of three words, each a Literal.
            vote=_SIDES.get(word),
            flipped=flipped and completed,
            replacement=replacement,
            explanation=vote.text("explanation"),
        )

    def _check_judges(self, row: Values, ballots: list[RecordedBallot]) -> None:
        seats = [(ballot.replacement, ballot.judge) for ballot in ballots]
        if len(set(seats)) < len(seats):
            row.error("judge_votes", "names a judge twice")

    def _outcome(self, row: Values) -> Outcome | None:
        verdict = row.choice("majority_verdict", ("A", "B", "tie", "inconclusive"))
        winner = row.text("winner", required=True)
        expected = {"A": row.raw.get("model_a"), "B": row.raw.get("model_b")}.get(verdict, verdict)
        if verdict and winner != expected:
            row.error("winner", f"is {clip(winner)!r}, and majority_verdict says {clip(expected)!r}")
        outcomes: dict[str, Outcome] = {"A": "a", "B": "b", "tie": "tie", "inconclusive": "inconclusive"}
        return outcomes.get(verdict)

    # The whole -------------------------------------------------------------------------------------------
    def _run(self) -> RecordedRun | None:
        manifest = Values(self._manifest, self._log, file=f"{self._path.rsplit('.', 1)[0]}.run.json")
        before = self._log.error_count
        quorum = manifest.count("min_successful_judges", most=1_000)
        seed = manifest.count("seed", most=MAX_SEED)
        started, finished = manifest.moment("started_at"), manifest.moment("finished_at")
        if not self._judges.ids:
            manifest.error("judges", "names no judge")
        if self._log.error_count > before:
            return None
        protocol: dict[str, Any] = {"preset": "audited"}
        if quorum:
            protocol["quorum"] = quorum
        return RecordedRun(
            source="orq-arena",
            source_id=self._tournament,
            name=self._tournament,
            samples=tuple(self._samples.values()),
            candidates=tuple(self._model(full_id, candidate=True) for full_id in self._candidates.ids),
            judges=tuple(self._model(full_id) for full_id in self._judges.ids),
            replacement_judges=tuple(self._model(full_id) for full_id in self._stand_ins.ids),
            answers=tuple(self._answers),
            matches=tuple(self._matches),
            protocol=protocol,
            pairing="round_robin",
            seed=seed,
            planned_matches=self._planned(),
            started_at=started,
            finished_at=finished or max((m.decided_at for m in self._matches if m.decided_at), default=None),
            recorded={"manifest": self._manifest} if self._manifest else {},
            not_recorded=self._not_recorded(),
            task_set_name=f"{self._tournament} prompts",
        )

    def _planned(self) -> int:
        preflight = self._manifest.get("preflight")
        counts = preflight.get("counts") if isinstance(preflight, dict) else None
        if isinstance(counts, dict):
            matches, rounds = counts.get("matches"), counts.get("rounds_per_match")
            if isinstance(matches, int) and isinstance(rounds, int) and 0 < matches * rounds <= MAX_ROUNDS:
                return max(matches * rounds, len(self._matches))
        return len(self._matches)

    def _model(self, full_id: str, *, candidate: bool = False) -> RecordedModel:
        label = self._labels.get(full_id, full_id.rsplit("/", 1)[-1]) if candidate else full_id.rsplit("/", 1)[-1]
        entries: dict[str, Any] = self._manifest.get("candidates", {}) if candidate else {}
        entry: dict[str, Any] = next((entry for entry in entries.values() if entry.get("model") == full_id), {})
        reasoning = entry.get("reasoning")
        return RecordedModel(
            full_id, label, reasoning if isinstance(reasoning, dict) else {}, self._prices.get(full_id)
        )

    def _not_recorded(self) -> tuple[str, ...]:
        missing = ["votes_by_seat_order", "judge_tokens_by_judge", "judge_latency", "judge_errors"]
        if not self._manifest:
            missing += ["seed", "prices", "panel"]
        return tuple(missing)


MAX_ROUNDS = 200_000
