"""Records of JuryArena: its static JSON, and the folders that its worker writes.

Static: `matches/EVALUATION.json` lists the matches, `matches/detail/ID.json` has each with both answers,
`samples/DATASET.json` the prompts, `evaluations/EVALUATION/index.json` the configuration and the ratings by step.
Folders: a data set with `samples/ID/info.json`, and below `benchmarks/NAME/` the files `config.yaml`, `info.json`,
`arena_matches/NNNNN.json`, `trials/SAMPLE/MODEL/trial.json` and `ratings/stepNNN.json`.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from arena.ingest import jsontext
from arena.ingest.dialects import JURY_ARENA, RawSample
from arena.ingest.hashing import hash_json
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.recorded.trees import Tree
from arena.ingest.recorded.types import (
    Outcome,
    RecordedAnswer,
    RecordedBallot,
    RecordedMatch,
    RecordedModel,
    RecordedRun,
    Side,
    SkipCode,
)
from arena.ingest.recorded.values import MAX_SEED, Values
from arena.ingest.samples import SampleReader
from arena.ingest.types import SampleDraft

SOURCE = "juryarena"
MAX_MATCHES = 200_000
CONFIG_BYTES = 1024 * 1024
_DETAIL = re.compile(r"(?P<root>(?:.*/)?)matches/detail/[^/]+\.json")
_FOLDER = re.compile(r"(?P<root>(?:.*/)?)arena_matches/[^/]+\.json")
_LISTED = re.compile(r"(?P<root>(?:.*/)?)matches/(?P<id>[^/]+)\.json")
_SAMPLES = re.compile(r"(?P<root>(?:.*/)?)samples/[^/]+\.json")
_INFO = re.compile(r"(?P<root>(?:.*/)?)samples/(?P<id>[^/]+)/info\.json")
_SKIPPED = "Skipped:"
_REASONS: Mapping[str, SkipCode] = {
    "UNSUPPORTED_INPUT": "UNSUPPORTED_INPUT",
    "CONTEXT_OVERFLOW": "CONTEXT_OVERFLOW",
}
_LANGUAGES = ("en", "ja")


def holds_record(paths: list[str]) -> bool:
    return any(_DETAIL.fullmatch(path) or _FOLDER.fullmatch(path) for path in paths)


def read_runs(tree: Tree) -> list[RecordedRun]:
    """Every evaluation of the tree; what is wrong goes to the log, and a run with an error is left out."""
    paths = tree.paths()
    found = [*_static(tree, paths), *_folders(tree, paths)]
    return [run for run in (_Evaluation(tree, one).read() for one in found) if run is not None]


@dataclass(slots=True)
class _Files:
    """Where the parts of one evaluation lie, brought to one shape."""

    source_id: str
    name: str
    place: str
    # (file, the match object, trial A, trial B, sample or None)
    matches: list[tuple[str, Any, Any, Any, Any]]
    samples: dict[str, tuple[str, Any]]
    config: dict[str, Any]
    recorded: dict[str, Any]
    created_at: dt.datetime | None = None
    task_set_name: str = ""


# The two layouts ---------------------------------------------------------------------------------------------
def _static(tree: Tree, paths: list[str]) -> list[_Files]:
    details: dict[str, dict[str, str]] = defaultdict(dict)
    for path in paths:
        match = _DETAIL.fullmatch(path)
        if match:
            details[match["root"]][path.rsplit("/", 1)[-1].removesuffix(".json")] = path
    found: list[_Files] = []
    for root, by_id in details.items():
        samples = _static_samples(tree, [path for path in paths if _SAMPLES.fullmatch(path) and path.startswith(root)])
        listed: set[str] = set()
        for path in paths:
            match = _LISTED.fullmatch(path)
            if match and match["root"] == root:
                found.append(_static_evaluation(tree, root, match["id"], path, by_id, samples, listed))
        stray = sorted(by_id.keys() - listed)
        for name in stray:
            tree.log.error("is a match of no evaluation under matches/", file=clip(by_id[name], 200))
    return found


def _static_samples(tree: Tree, paths: list[str]) -> dict[str, tuple[str, Any]]:
    samples: dict[str, tuple[str, Any]] = {}
    for path in paths:
        document = Values(tree.json(path), tree.log, file=clip(path, 200))
        for i, value in enumerate(document.items("samples") if document.raw else []):
            row = document.child(value, f"samples[{i}]")
            if row.raw:
                samples[row.name("id")] = (clip(path, 200), row.raw.get("info"))
    return samples


def _static_evaluation(
    tree: Tree,
    root: str,
    source_id: str,
    path: str,
    details: dict[str, str],
    samples: dict[str, tuple[str, Any]],
    listed: set[str],
) -> _Files:
    listing = Values(tree.json(path), tree.log, file=clip(path, 200))
    matches = []
    for i, value in enumerate(listing.items("matches") if listing.raw else []):
        entry = listing.child(value, f"matches[{i}]")
        name = entry.name("id")
        if not name:
            continue
        if name in listed:
            entry.error("id", f"{clip(name)!r} is listed twice")
        elif name not in details:
            entry.error("id", f"matches/detail/{clip(name)}.json is not in the record")
        else:
            listed.add(name)
            detail = Values(tree.json(details[name]), tree.log, file=clip(details[name], 200))
            if detail.raw:
                get = detail.raw.get
                matches.append((detail.file, get("match"), get("trialA"), get("trialB"), get("sampleInfo")))
    config, recorded, name, created, data_set = _static_settings(tree, f"{root}evaluations/{source_id}/index.json")
    return _Files(source_id, name or source_id, clip(path, 200), matches, samples, config, recorded, created, data_set)


def _static_settings(tree: Tree, path: str) -> tuple[dict[str, Any], dict[str, Any], str, dt.datetime | None, str]:
    if path not in tree.paths():
        tree.log.warn("is not in the record: seed, language and ratings as recorded are not known", file=path)
        return {}, {}, "", None, ""
    document = Values(tree.json(path), tree.log, file=clip(path, 200))
    if not document.raw:
        return {}, {}, "", None, ""
    benchmark = document.of("benchmark")
    recorded = {key: value for key, value in document.raw.items() if key not in ("benchmark", "ratingHistory")}
    config = benchmark.raw.get("config")
    name = clip(benchmark.text("name"), 150)
    return (
        config if isinstance(config, dict) else {},
        recorded,
        name,
        benchmark.moment("createdAt"),
        clip(benchmark.text("datasetName"), 150),
    )


def _folders(tree: Tree, paths: list[str]) -> list[_Files]:
    by_root: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        match = _FOLDER.fullmatch(path)
        if match:
            by_root[match["root"]].append(path)
    return [_folder(tree, root, sorted(files), paths) for root, files in sorted(by_root.items())]


def _folder(tree: Tree, root: str, files: list[str], paths: list[str]) -> _Files:
    # benchmarks/NAME/ lies two folders below its data set.
    data_set = root.rstrip("/").rsplit("/", 2)[0] + "/" if root.count("/") > 2 else ""
    infos = {m["id"]: path for path in paths if (m := _INFO.fullmatch(path)) and m["root"] in (data_set, root)}
    samples = {name: (clip(path, 200), tree.json(path)) for name, path in infos.items()}
    trials: dict[tuple[str, str], tuple[str, Any]] = {}
    start = f"{root}trials/"
    for path in paths:
        if path.startswith(start) and path.endswith("/trial.json"):
            inside = path.removeprefix(start).removesuffix("/trial.json")
            sample, _slash, model = inside.partition("/")
            trials[sample, model] = (path, tree.json(path))
    matches: list[tuple[str, Any, Any, Any, Any]] = []
    for path in files:
        value = tree.json(path)
        if not isinstance(value, dict):
            tree.log.error("must be an object", file=clip(path, 200))
            continue
        one, other = (
            trials.get((str(value.get("sample_id")), str(value.get(key))), ("", None))[1]
            for key in ("model_a", "model_b")
        )
        matches.append((clip(path, 200), value, one, other, None))
    info = tree.json(f"{root}info.json") if f"{root}info.json" in paths else None
    created = Values(info, tree.log, file=f"{root}info.json").moment("created_at") if isinstance(info, dict) else None
    name = clip(root.rstrip("/").rsplit("/", 1)[-1], 150) or "benchmark"
    return _Files(
        source_id=name,
        name=name,
        place=clip(f"{root}arena_matches", 200),
        matches=matches,
        samples=samples,
        config=_config(tree, f"{root}config.yaml"),
        recorded=_last_step(tree, root, paths),
        created_at=created,
        task_set_name=clip(data_set.rstrip("/").rsplit("/", 1)[-1], 150),
    )


def _config(tree: Tree, path: str) -> dict[str, Any]:
    if path not in tree.paths():
        tree.log.warn("is not in the record: seed and language are not known", file=clip(path, 200))
        return {}
    text = tree.text(path)
    if text is None:
        return {}
    if len(text) > CONFIG_BYTES:
        tree.log.error(f"is larger than {CONFIG_BYTES:,} characters", file=clip(path, 200))
        return {}
    try:
        # Safe: builds lists, dictionaries and scalars, and nothing else.
        value = YAML(typ="safe", pure=True).load(text)
        # Dates and other scalars of YAML are shown, never computed with.
        plain = json.loads(json.dumps(value, default=str, allow_nan=False))
    except (YAMLError, ValueError, TypeError, RecursionError) as bad:
        tree.log.error(f"is not YAML that can be read: {clip(str(bad).splitlines()[0], 200)}", file=clip(path, 200))
        return {}
    if not isinstance(plain, dict):
        tree.log.error("must be a mapping", file=clip(path, 200))
        return {}
    return plain


def _last_step(tree: Tree, root: str, paths: list[str]) -> dict[str, Any]:
    steps = sorted(path for path in paths if path.startswith(f"{root}ratings/step") and path.endswith(".json"))
    value = tree.json(steps[-1]) if steps else None
    return {"finalStep": value} if isinstance(value, dict) else {}


# One evaluation ----------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Roster:
    ids: dict[str, int] = field(default_factory=dict)

    def place(self, full_id: str) -> int:
        return self.ids.setdefault(full_id, len(self.ids))


class _Evaluation:
    def __init__(self, tree: Tree, files: _Files) -> None:
        self._tree, self._files = tree, files
        self._log: ProblemLog = tree.log
        self._candidates, self._judges = _Roster(), _Roster()
        self._samples: dict[str, SampleDraft] = {}
        self._answers: dict[str, RecordedAnswer] = {}
        self._matches: list[RecordedMatch] = []
        self._numbers: dict[int, str] = {}

    def read(self) -> RecordedRun | None:
        before = self._log.error_count
        config = Values(self._files.config, self._log, file=self._files.place, at="config")
        models = config.raw.get("models")
        if isinstance(models, dict):
            named = config.child(models, "models")
            for full_id in named.names("trials"):
                self._candidates.place(full_id)
            for full_id in named.names("judges"):
                self._judges.place(full_id)
        if not self._files.matches:
            self._log.error("holds no matches", file=self._files.place)
        if len(self._files.matches) > MAX_MATCHES:
            self._log.error(f"holds more than {MAX_MATCHES:,} matches", file=self._files.place)
            return None
        batch = self._batch(config)
        for file, match, trial_a, trial_b, info in self._files.matches:
            self._match(Values(match, self._log, file=file, at="match"), trial_a, trial_b, info, batch)
        return self._run(config) if self._log.error_count == before else None

    @staticmethod
    def _batch(config: Values) -> int:
        execution = config.raw.get("execution")
        size = execution.get("match_batch_size") if isinstance(execution, dict) else None
        return size if isinstance(size, int) and not isinstance(size, bool) and 0 < size < 100_000 else 1

    def _match(self, row: Values, trial_a: Any, trial_b: Any, info: Any, batch: int) -> None:
        if not row.raw:
            return
        before = self._log.error_count
        number = self._number(row)
        sample_id = row.name("sample_id")
        sample = self._sample(row, sample_id, info)
        names = {side: row.name(f"model_{side}") for side in ("a", "b")}
        if names["a"] and names["a"] == names["b"]:
            row.error("model_b", "is the model of model_a")
        models = {side: self._candidates.place(name) for side, name in names.items()}
        details = row.of("judge_details")
        panel = row.names("judge_models") if "judge_models" in row.raw else list(details.raw)
        skipped = bool(details.raw) and all(_is_skip(value) for value in details.raw.values())
        keys = [
            self._answer(row, side, models[side], sample_id, sample, trial)
            for side, trial in (("a", trial_a), ("b", trial_b))
        ]
        failed = any(self._answers[key].failed for key in keys if key in self._answers)
        winner = self._side(row, "winner", names)
        if failed and not skipped:
            row.error("judge_details", "judges a match whose answer is recorded as skipped")
        if skipped and not failed:
            row.error("judge_details", "says that an answer was skipped, and both are there")
        ballots = [] if skipped else [self._ballot(details, judge, names) for judge in panel]
        if self._log.error_count > before:
            return
        outcome: Outcome | None = None if skipped else winner
        self._matches.append(
            RecordedMatch(
                file=row.file,
                line=None,
                sequence=number + 1,
                step=number // batch + 1,
                sample=sample,
                a=models["a"],
                b=models["b"],
                answer_a=keys[0],
                answer_b=keys[1],
                ballots=tuple(ballots),
                outcome=outcome,
                a_sat_first=True,
                forced_tie=skipped,
                decided_at=row.moment("created_at"),
                recorded={"match_id": row.raw.get("match_id")},
            )
        )

    def _number(self, row: Values) -> int:
        name = row.name("match_id")
        digits = re.fullmatch(r"match_(\d{1,9})", name)
        if digits is None:
            if name:
                row.error("match_id", f"{clip(name)!r} must be match_ and a number")
            return 0
        number = int(digits[1])
        other = self._numbers.setdefault(number, row.file)
        if other != row.file:
            row.error("match_id", f"{clip(name)!r} is also the match of {clip(other, 120)}")
        return number

    def _sample(self, row: Values, sample_id: str, info: Any) -> int:
        if sample_id in self._samples:
            return self._samples[sample_id].position
        file, found = self._files.samples.get(sample_id, (row.file, info))
        if found is None:
            row.error("sample_id", f"{clip(sample_id)!r} is no sample of the record")
            return 0
        values = Values(found, self._log, file=file)
        body = values.raw.get("input")
        messages = body.get("messages") if isinstance(body, dict) else None
        raw = RawSample(JURY_ARENA, messages, "input.messages", {"id": sample_id or None}, {}, {"id": "sample_id"})
        reader = SampleReader(
            raw,
            error=lambda field, message: values.error(field, message),
            warn=lambda field, message: values.warn(field, message),
            image_bytes=self._tree.limits.image_bytes,
        )
        if reader.paths:
            values.error(
                next(iter(reader.paths.values())), "names a file; runs over samples with files cannot be imported"
            )
            return 0
        position = len(self._samples)
        self._samples[sample_id] = reader.draft(position=position, key=sample_id, line=None, attachments={})
        return position

    def _answer(self, row: Values, side: str, model: int, sample_id: str, sample: int, trial: Any) -> str:
        if trial is None:
            row.error(f"model_{side}", "has no trial for this sample in the record")
            return ""
        values = Values(trial, self._log, file=row.file, at=f"trial{side.upper()}")
        if not values.raw:
            return ""
        output = values.raw.get("output")
        skip = _skip_of(output)
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        tokens = values.raw.get("tokens")
        counts = values.child(tokens if isinstance(tokens, dict) else {}, "tokens")
        identity = {key: values.raw.get(key) for key in ("output", "tokens", "cost_usd", "latency_ms", "params")}
        key = hash_json([sample_id, model, identity])
        if key not in self._answers:
            code, error = skip or ("", "")
            empty = not skip and not text.strip()
            cost, latency = values.usd("cost_usd"), values.milliseconds("latency_ms")
            self._answers[key] = RecordedAnswer(
                key=key,
                model=model,
                sample=sample,
                text="" if skip else text,
                skip_code="EMPTY_ANSWER" if empty else code,
                error="The answer is empty." if empty else error,
                # The record writes nought for a call that gave nothing.
                input_tokens=None if skip else counts.count("input"),
                output_tokens=None if skip else counts.count("output"),
                # And nought where the price was not known to it.
                cost_usd=None if skip or not cost else cost.quantize(Decimal("0.00000001")),
                duration_ms=latency,
            )
        return key

    def _side(self, row: Values, key: str, names: dict[str, str]) -> Side | None:
        value = row.raw.get(key)
        sides: dict[Any, Side] = {names["a"]: "a", names["b"]: "b", "tie": "tie"}
        if isinstance(value, str) and value in sides:
            return sides[value]
        row.error(key, f"is {clip(value)!r}; it must be one of the two models, or tie")
        return None

    def _ballot(self, details: Values, judge: str, names: dict[str, str]) -> RecordedBallot:
        if judge not in details.raw:
            details.error(clip(judge), "is on the panel and has no vote")
            return RecordedBallot(0, "failed")
        detail = details.of(judge)
        return RecordedBallot(
            judge=self._judges.place(judge),
            status="vote",
            vote=self._side(detail, "winner", names),
            raw=detail.text("output"),
        )

    def _run(self, config: Values) -> RecordedRun | None:
        before = self._log.error_count
        execution, stopping = config.raw.get("execution"), config.raw.get("stopping")
        seed = config.child(execution if isinstance(execution, dict) else {}, "execution").count("seed", most=MAX_SEED)
        planned = config.child(stopping if isinstance(stopping, dict) else {}, "stopping").count("max_matches")
        selection = config.raw.get("selection")
        strategy = selection.get("strategy") if isinstance(selection, dict) else None
        language = config.raw.get("judge_output_language")
        protocol: dict[str, Any] = {"preset": "majority"}
        if language in _LANGUAGES:
            protocol["language"] = language
        if self._log.error_count > before:
            return None
        ordered = sorted(self._matches, key=lambda match: match.sequence)
        moments = [match.decided_at for match in ordered if match.decided_at]
        lost = sorted(set(range(1, (planned or 0) + 1)) - {match.sequence for match in ordered})
        recorded: dict[str, Any] = {"config": self._files.config, **self._files.recorded}
        if lost:
            recorded["lost_matches"] = lost
        return RecordedRun(
            source="juryarena",
            source_id=self._files.source_id,
            name=self._files.name,
            samples=tuple(self._samples.values()),
            candidates=tuple(_model(full_id) for full_id in self._candidates.ids),
            judges=tuple(_model(full_id) for full_id in self._judges.ids),
            replacement_judges=(),
            answers=tuple(self._answers.values()),
            matches=tuple(ordered),
            protocol=protocol,
            pairing=clip(strategy, 60) if isinstance(strategy, str) else "",
            seed=seed,
            planned_matches=max(planned or 0, len(ordered)),
            started_at=self._files.created_at,
            finished_at=max(moments, default=None),
            recorded=recorded,
            not_recorded=("judge_tokens", "judge_cost_by_judge", "judge_latency", "prices", "finish_reasons"),
            task_set_name=self._files.task_set_name or f"{self._files.name} prompts",
        )


def _model(full_id: str) -> RecordedModel:
    return RecordedModel(full_id, full_id.rsplit("/", 1)[-1])


def _is_skip(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("output"), str) and value["output"].startswith(_SKIPPED)


def _skip_of(output: Any) -> tuple[SkipCode, str] | None:
    """Code and words of an answer that is recorded as skipped: an object in place of its text."""
    found = output
    if isinstance(output, str) and '"skipped"' in output and len(output) < 10_000:
        found = jsontext.parse_json(output, error=lambda *_: None, warn=lambda *_: None)
    if not isinstance(found, dict) or found.get("skipped") is not True:
        return None
    reason = str(found.get("reason") or "")
    words = [str(found[key]) for key in ("error", "message") if found.get(key)]
    return _REASONS.get(reason, "OTHER_ERROR"), clip(": ".join(words) or reason or "skipped", 1_000)
