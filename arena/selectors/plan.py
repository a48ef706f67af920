"""What a tournament would do and cost, without doing any of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Literal

from django.db.models import Avg, Count, F, Func, IntegerField, QuerySet, TextField
from django.db.models.functions import Cast

from arena.judging.panels import may_judge
from arena.judging.prompts import judge_messages, schema_in_prompt, verdict_schema_bytes
from arena.judging.protocol import Protocol
from arena.judging.skips import TRIAL_LIMITS
from arena.llm.pricing import IMAGE_TOKENS, MESSAGE_OVERHEAD_BYTES, PDF_PAGE_TOKENS, worst_case_usd
from arena.models import Call, CallStatus, LanguageModel, Price, Sample, SampleAttachment, TaskSet, Trial
from arena.selectors.cells import Cell, known_trials, reads_as_judge, refused_types
from arena.selectors.plan_warnings import PlanWarning, warnings_of
from arena.selectors.specs import TournamentSpec, named, prices_of, problems_of
from ratings.engine.pairing import Planned, pairs, remaining, step_seed

Role = Literal["candidate", "judge", "stand_in"]

# Stated on the page. The first two stand in where the team has seen no call of a model.
DEFAULT_ANSWER_TOKENS = 600
DEFAULT_VERDICT_TOKENS = 350
# Longer tokens exist (runs of blanks); answers made of them alone do not.
ANSWER_TOKEN_BYTES = 8
BYTES_PER_TOKEN = 4
UTF8_BYTES = 4


class _Octets(Func):
    """Bytes of a text. SQLite keeps JSON as ASCII, so its characters are bytes, and never too few."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()

    def as_sqlite(self, compiler, connection, **context):  # type: ignore[no-untyped-def]
        return self.as_sql(compiler, connection, function="LENGTH", **context)


@dataclass(frozen=True)
class SampleFacts:
    """A sample without its text: a set of 5,000 may hold a gigabyte."""

    pk: int
    category: str
    input_hash: str
    text_bytes: int
    # Of the reference answer and the sample's own criteria, which only judges see.
    note_bytes: int
    file_types: frozenset[str] = frozenset()
    pdf_pages: int = 0
    images: int = 0

    @property
    def file_tokens(self) -> int:
        return self.pdf_pages * PDF_PAGE_TOKENS + self.images * IMAGE_TOKENS


@dataclass(frozen=True)
class Seen:
    """Mean tokens of the calls of a model that this team has made."""

    calls: int
    input_tokens: float
    output_tokens: float


@dataclass
class ModelPlan:
    model: LanguageModel
    label: str
    role: Role
    price: Price | None
    seen: Seen | None = None
    calls: int = 0
    # With a repair or retry of every call, and stand-ins called wherever they may be.
    most_calls: int = 0
    input_bytes: int = 0
    pdf_pages: int = 0
    images: int = 0
    expected_input_tokens: float = 0
    expected_output_tokens: float = 0

    @property
    def expected_usd(self) -> Decimal | None:
        if self.price is None:
            return None if self.calls else Decimal(0)
        tokens_in, tokens_out = self.expected_input_tokens, self.expected_output_tokens
        if self.seen is not None:
            tokens_in, tokens_out = self.calls * self.seen.input_tokens, self.calls * self.seen.output_tokens
        dollars = tokens_in * float(self.price.input_per_million) + tokens_out * float(self.price.output_per_million)
        return Decimal(dollars / 1_000_000).quantize(Decimal("0.000001"))

    @property
    def worst_usd(self) -> Decimal | None:
        if not self.most_calls:
            return Decimal(0)
        output = None if self.model.max_tokens is None else self.model.max_tokens * self.most_calls
        return worst_case_usd(self.input_bytes, self.pdf_pages, output, self.price, images=self.images)


@dataclass(frozen=True)
class Example:
    """A planned match: its number, the key of its sample and the places of its candidates."""

    sequence: int
    sample: int
    first: int
    second: int


@dataclass
class Plan:
    spec: TournamentSpec
    problems: list[str]
    # Over recorded answers: nobody answers anew.
    recorded: bool = False
    samples: int = 0
    matches: int = 0
    possible: int = 0
    trials_cached: int = 0
    trials_lasting: int = 0
    rows: list[ModelPlan] = field(default_factory=list)
    # Matches that are void because a candidate takes no such file, and why judges sit out.
    void: int = 0
    void_by_candidate: Counter[str] = field(default_factory=Counter)
    unread_by_judge: Counter[str] = field(default_factory=Counter)
    excluded_by_judge: Counter[str] = field(default_factory=Counter)
    below_quorum: int = 0
    decidable_by_category: Counter[str] = field(default_factory=Counter)
    categories: list[str] = field(default_factory=list)
    matches_by_candidate: Counter[str] = field(default_factory=Counter)
    # The first match that is judged, for the preview of the prompt.
    example: Example | None = None

    @property
    def called(self) -> list[ModelPlan]:
        """Those who may be called."""
        return [row for row in self.rows if not (self.recorded and row.role == "candidate")]

    @property
    def trials_to_generate(self) -> int:
        return sum(row.calls for row in self.rows if row.role == "candidate")

    @property
    def judge_calls(self) -> int:
        return sum(row.calls for row in self.rows if row.role == "judge")

    @property
    def expected_usd(self) -> Decimal | None:
        """The sum of what is known, which `unpriced` says what is missing from; None where nothing is known."""
        known = [row.expected_usd for row in self.rows if row.calls and row.expected_usd is not None]
        return None if not known and self.unpriced else sum(known, Decimal(0))

    @property
    def worst_usd(self) -> Decimal:
        return sum((row.worst_usd or Decimal(0) for row in self.rows), Decimal(0))

    @property
    def unpriced(self) -> list[str]:
        return list(dict.fromkeys(row.model.full_id for row in self.called if row.price is None))

    @property
    def unlimited(self) -> list[str]:
        return list(dict.fromkeys(row.model.full_id for row in self.called if row.model.max_tokens is None))

    @property
    def is_bounded(self) -> bool:
        return all(row.worst_usd is not None for row in self.rows)

    @property
    def expected_share(self) -> float | None:
        """Of the budget; None where either is not known."""
        return _share(self.expected_usd if not self.unpriced else None, self.spec.budget_usd)

    @property
    def worst_share(self) -> float | None:
        return _share(self.worst_usd if self.is_bounded else None, self.spec.budget_usd)

    @cached_property
    def warnings(self) -> list[PlanWarning]:
        return warnings_of(self)


def _share(cost: Decimal | None, budget: Decimal | None) -> float | None:
    return None if cost is None or not budget else float(cost / budget)


def plan_of(spec: TournamentSpec) -> Plan:
    """A dry run: reads only, and calls nobody."""
    plan = Plan(spec, problems_of(spec))
    if len(spec.candidates) < 2:
        return plan
    samples = samples_of(spec.task_set, spec.categories)
    planned = _planned(spec, samples)
    plan.samples, plan.matches = len(samples), len(planned)
    plan.possible = remaining(range(len(spec.candidates)), len(samples))
    plan.categories = sorted({sample.category for sample in samples})
    draft = _Draft(plan, samples)
    draft.count(planned)
    if spec.follows_results:
        draft.bound_any_schedule()
    return plan


def plan_more(spec: TournamentSpec, sample_ids: Sequence[int], already: Sequence[tuple[int, int, int]]) -> Plan:
    """Matches beyond those there are; the candidates and samples of the spec are those of both."""
    plan = Plan(spec, [])
    by_id = {sample.pk: sample for sample in facts_of(Sample.objects.filter(pk__in=sample_ids))}
    samples = [by_id[pk] for pk in sample_ids]
    pks = [model.pk for model in spec.candidates]
    baseline = pks.index(spec.baseline.pk) if spec.baseline is not None else None
    planned = pairs(
        spec.pairing,
        range(len(pks)),
        [sample.category for sample in samples],
        spec.max_matches,
        spec.seed,
        already=already,
        baseline=baseline,
        baseline_weight=spec.baseline_weight if baseline is not None else None,
    )
    plan.samples, plan.matches = len(samples), len(planned)
    plan.possible = remaining(range(len(pks)), len(samples), already)
    plan.categories = sorted({sample.category for sample in samples})
    draft = _Draft(plan, samples)
    draft.count(planned)
    if spec.follows_results:
        draft.bound_any_schedule()
    return plan


def plan_verdicts(
    spec: TournamentSpec, matches: Sequence[tuple[int, int, int, int | None, int | None]], problems: list[str]
) -> Plan:
    """Verdicts over recorded answers: the sample, both language models and the characters of each answer."""
    plan = Plan(spec, problems, recorded=True)
    samples = facts_of(Sample.objects.filter(pk__in={match[0] for match in matches}))
    place = {sample.pk: index for index, sample in enumerate(samples)}
    side = {model.pk: index for index, model in enumerate(spec.candidates)}
    plan.samples, plan.matches, plan.possible = len(samples), len(matches), len(matches)
    plan.categories = sorted({sample.category for sample in samples})
    draft = _Draft(plan, samples)
    for sequence, (sample, first, second, *characters) in enumerate(matches, start=1):
        match = Planned(side[first], side[second], place[sample])
        draft.count_recorded(sequence, match, [count or 0 for count in characters])
    return plan


def samples_of(task_set: TaskSet, categories: Sequence[str] = ()) -> list[SampleFacts]:
    rows = task_set.samples.order_by("position")
    return facts_of(rows.filter(category__in=categories) if categories else rows)


def facts_of(rows: QuerySet[Sample]) -> list[SampleFacts]:
    files: dict[int, list[tuple[str, int | None]]] = {}
    links = SampleAttachment.objects.filter(sample__in=rows).values_list(
        "sample_id", "attachment__content_type", "attachment__pages"
    )
    for sample_id, content_type, pages in links:
        files.setdefault(sample_id, []).append((content_type, pages))
    sizes = rows.annotate(
        text_bytes=_Octets(Cast("messages", TextField())),
        note_bytes=_Octets(F("reference"), output_field=IntegerField())
        + _Octets(F("criteria"), output_field=IntegerField()),
    ).values_list("pk", "category", "input_hash", "text_bytes", "note_bytes")
    return [_facts(*row, files=files.get(row[0], [])) for row in sizes]


def _facts(
    pk: int, category: str, input_hash: str, text: int, notes: int, *, files: list[tuple[str, int | None]]
) -> SampleFacts:
    if not files:
        return SampleFacts(pk, category, input_hash, text, notes * UTF8_BYTES)
    pdfs = [pages or 1 for kind, pages in files if not kind.startswith("image/")]
    types = frozenset(kind for kind, _ in files)
    return SampleFacts(pk, category, input_hash, text, notes * UTF8_BYTES, types, sum(pdfs), len(files) - len(pdfs))


def _planned(spec: TournamentSpec, samples: Sequence[SampleFacts]) -> list[Planned]:
    pks = [model.pk for model in spec.candidates]
    baseline = pks.index(spec.baseline.pk) if spec.baseline is not None and spec.baseline.pk in pks else None
    return _schedule(
        spec.pairing,
        len(pks),
        tuple(sample.category for sample in samples),
        spec.max_matches,
        # Where results are followed: a schedule of equally good candidates, whose first step is that of the run.
        step_seed(spec.seed, 1) if spec.follows_results else spec.seed,
        baseline,
        spec.baseline_weight if baseline is not None else None,
    )


@lru_cache(maxsize=8)
def _schedule(
    pairing: str,
    n_candidates: int,
    categories: tuple[str, ...],
    max_matches: int,
    seed: int,
    baseline: int | None,
    baseline_weight: float | None,
) -> list[Planned]:
    """Kept while somebody tries other judges: it hangs on none of them, and takes a second for 5,000 matches."""
    return pairs(
        pairing,
        range(n_candidates),
        categories,
        max_matches,
        seed,
        baseline=baseline,
        baseline_weight=baseline_weight,
    )


class _Draft:
    """Fills a plan, match by match."""

    def __init__(self, plan: Plan, samples: Sequence[SampleFacts]) -> None:
        spec = plan.spec
        self.plan, self.spec, self.samples = plan, spec, samples
        prices, seen = prices_of([model.pk for model in spec.models]), seen_tokens(spec)
        panels: list[tuple[Role, Sequence[LanguageModel], str]] = [
            ("candidate", spec.candidates, Call.Purpose.TRIAL),
            ("judge", spec.judges, Call.Purpose.VERDICT),
            ("stand_in", spec.replacement_judges, Call.Purpose.VERDICT),
        ]
        self.rows: dict[Role, list[ModelPlan]] = {
            role: [
                ModelPlan(model, label, role, prices.get(model.pk), seen.get((model.pk, purpose)))
                for model, label, _ in named(models)
            ]
            for role, models, purpose in panels
        }
        plan.rows = [row for rows in self.rows.values() for row in rows]
        self.answers: dict[Cell, tuple[int, float] | None] = {}
        # Answers that cost nothing any more.
        self.there: set[Cell] = set()
        self.prompt_bytes = prompt_bytes(spec.protocol)
        self._reads: dict[tuple[int, frozenset[str]], bool] = {}

    def count(self, planned: Sequence[Planned]) -> None:
        wanted = list(
            dict.fromkeys((match.sample, place) for match in planned for place in (match.first, match.second))
        )
        cells = [self._cell(sample, place) for sample, place in wanted]
        known = known_trials(self.spec.task_set.team_id, cells)
        for (sample, place), cell in zip(wanted, cells, strict=True):
            # Two samples may ask for the same input: one answer serves both.
            if cell not in self.answers:
                self._count_trial(self.samples[sample], self.rows["candidate"][place], cell, known)
        for sequence, match in enumerate(planned, start=1):
            self._count_match(sequence, match)

    def count_recorded(self, sequence: int, match: Planned, characters: Sequence[int]) -> None:
        """A match whose answers are there, of so many characters."""
        cells = [self._cell(match.sample, place) for place in (match.first, match.second)]
        for cell, count in zip(cells, characters, strict=True):
            self._note_answer(cell, count)
        self._count_match(sequence, match)

    def _note_answer(self, cell: Cell, characters: int) -> None:
        self.plan.trials_cached += cell not in self.there
        self.there.add(cell)
        read = min(characters, self.spec.protocol.answer_character_cap)
        self.answers[cell] = (read * UTF8_BYTES, read / BYTES_PER_TOKEN)

    def bound_any_schedule(self) -> None:
        """The worst case of every schedule there may be, in place of that of the one that was counted."""
        matches = self.plan.matches
        for place, row in enumerate(self.rows["candidate"]):
            row.most_calls = row.input_bytes = row.pdf_pages = row.images = 0
            open_samples = {
                sample.input_hash: sample
                for index, sample in enumerate(self.samples)
                if self._cell(index, place) not in self.there
            }
            largest = sorted(open_samples.values(), key=lambda sample: (sample.file_tokens, sample.text_bytes))
            for sample in largest[-matches:]:
                self._count_attempts(sample, row)
        answers = sorted(self._longest_answer(row) for row in self.rows["candidate"])[-2:]
        largest_prompt = SampleFacts(
            pk=0,
            category="",
            input_hash="",
            text_bytes=max(sample.text_bytes + sample.note_bytes for sample in self.samples),
            note_bytes=0,
            pdf_pages=max(sample.pdf_pages for sample in self.samples),
            images=max(sample.images for sample in self.samples),
        )
        for row in (*self.rows["judge"], *self.rows["stand_in"]):
            row.most_calls = row.input_bytes = row.pdf_pages = row.images = 0
            self._bound_verdicts(row, largest_prompt, sum(answers), times=matches)

    def _cell(self, sample: int, place: int) -> Cell:
        return self.samples[sample].input_hash, self.spec.candidates[place].fingerprint

    def _count_trial(self, sample: SampleFacts, row: ModelPlan, cell: Cell, known: dict[Cell, Trial]) -> None:
        trial = known.get(cell)
        if trial is not None and trial.succeeded:
            self._note_answer(cell, trial.characters or 0)
        elif refused_types(row.model, sample.file_types):
            self.answers[cell] = None
        elif trial is not None and trial.status == CallStatus.FAILED:
            self.plan.trials_lasting += 1
            self.answers[cell] = None
        else:
            self._count_call(sample, row, cell)

    def _count_call(self, sample: SampleFacts, row: ModelPlan, cell: Cell) -> None:
        model = row.model
        size = self._count_attempts(sample, row)
        output = row.seen.output_tokens if row.seen else DEFAULT_ANSWER_TOKENS
        output = min(output, model.max_tokens or output)
        row.calls += 1
        row.expected_input_tokens += size / BYTES_PER_TOKEN + sample.file_tokens
        row.expected_output_tokens += output
        self.answers[cell] = (self._longest_answer(row), output)

    def _count_attempts(self, sample: SampleFacts, row: ModelPlan) -> int:
        """What an answer may take at worst; returns the bytes of its input."""
        model, attempts = row.model, 1 + TRIAL_LIMITS.retries
        size = sample.text_bytes + len(model.system_prompt.encode()) + len(str(model.parameters).encode())
        size += MESSAGE_OVERHEAD_BYTES
        row.most_calls += attempts
        row.input_bytes += attempts * size
        row.pdf_pages += attempts * sample.pdf_pages
        row.images += attempts * sample.images
        return size

    def _longest_answer(self, row: ModelPlan) -> int:
        """Bytes that a judge may be sent of it."""
        longest = self.spec.protocol.answer_character_cap * UTF8_BYTES
        return min(longest, (row.model.max_tokens or longest) * ANSWER_TOKEN_BYTES)

    def _count_match(self, sequence: int, match: Planned) -> None:
        plan, sample = self.plan, self.samples[match.sample]
        sides = [self.rows["candidate"][place] for place in (match.first, match.second)]
        answers = [self.answers[self._cell(match.sample, place)] for place in (match.first, match.second)]
        for side, answer in zip(sides, answers, strict=True):
            plan.matches_by_candidate[side.label] += 1
            if answer is None:
                plan.void_by_candidate[side.label] += 1
        first, second = answers
        if first is None or second is None:
            plan.void += 1
            return
        if plan.example is None:
            plan.example = Example(sequence, sample.pk, match.first, match.second)
        ids = sides[0].model.model_id, sides[1].model.model_id
        seated = [row for row in self.rows["judge"] if self._sits(row, ids, sample)]
        for row in seated:
            self._count_verdicts(row, sample, first, second)
        free = [row for row in self.rows["stand_in"] if self._may_stand_in(row, ids, sample)]
        for row in free[: len(seated)]:
            self._count_verdicts(row, sample, first, second)
        if len(seated) >= max(1, self.spec.protocol.quorum):
            plan.decidable_by_category[sample.category] += 1
        else:
            plan.below_quorum += 1

    def _sits(self, row: ModelPlan, ids: tuple[str, str], sample: SampleFacts) -> bool:
        if not may_judge(row.model.model_id, *ids):
            self.plan.excluded_by_judge[row.label] += 1
            return False
        if not self._can_read(row, sample):
            self.plan.unread_by_judge[row.label] += 1
            return False
        return True

    def _may_stand_in(self, row: ModelPlan, ids: tuple[str, str], sample: SampleFacts) -> bool:
        return may_judge(row.model.model_id, *ids) and self._can_read(row, sample)

    def _can_read(self, row: ModelPlan, sample: SampleFacts) -> bool:
        if not sample.file_types:
            return True
        key = row.model.pk, sample.file_types
        if key not in self._reads:
            self._reads[key] = reads_as_judge(row.model, sample.file_types, self.spec.protocol)
        return self._reads[key]

    def _count_verdicts(
        self, row: ModelPlan, sample: SampleFacts, first: tuple[int, float], second: tuple[int, float]
    ) -> None:
        orders, model = self.spec.protocol.seat_orders, row.model
        size = self._bound_verdicts(row, sample, first[0] + second[0])
        if row.role == "stand_in":
            # How often somebody fails is not foreseen.
            return
        output = min(DEFAULT_VERDICT_TOKENS, model.max_tokens or DEFAULT_VERDICT_TOKENS)
        row.calls += orders
        row.expected_input_tokens += orders * (size / BYTES_PER_TOKEN + sample.file_tokens + first[1] + second[1])
        row.expected_output_tokens += orders * output

    def _bound_verdicts(self, row: ModelPlan, sample: SampleFacts, answer_bytes: int, *, times: int = 1) -> int:
        """What a judge's verdicts on matches may take at worst; returns the bytes of a prompt without answers."""
        protocol = self.spec.protocol
        attempts = times * protocol.seat_orders * (1 + protocol.repair_attempts)
        size = self.prompt_bytes + sample.text_bytes + sample.note_bytes + len(str(row.model.parameters))
        row.most_calls += attempts
        row.input_bytes += attempts * (size + answer_bytes)
        row.pdf_pages += attempts * sample.pdf_pages
        row.images += attempts * sample.images
        return size


def seen_tokens(spec: TournamentSpec) -> dict[tuple[int, str], Seen]:
    rows = (
        Call.objects.filter(
            team=spec.task_set.team_id,
            language_model__in=[model.pk for model in spec.models],
            status=Call.Status.OK,
            input_tokens__isnull=False,
            output_tokens__isnull=False,
        )
        .exclude(purpose=Call.Purpose.PROBE)
        .values_list("language_model_id", "purpose")
        .annotate(n=Count("pk"), mean_in=Avg("input_tokens"), mean_out=Avg("output_tokens"))
    )
    return {(model, purpose): Seen(n, float(i), float(o)) for model, purpose, n, i, o in rows if model is not None}


def prompt_bytes(protocol: Protocol) -> int:
    """Everything a judge is sent beside the sample's text and the answers, the schema in words included."""
    prompt = judge_messages(
        sample_messages=[{"role": "user", "content": "?"}],
        answer_a="?",
        answer_b="?",
        protocol=protocol,
        fence_seed="",
        reference="?",
        sample_criteria="?",
    )
    words = sum(len(str(message["content"]).encode()) for message in prompt.messages)
    schema = 3 * verdict_schema_bytes(protocol.language) + len(schema_in_prompt(protocol.language).encode())
    return words + schema + MESSAGE_OVERHEAD_BYTES * len(prompt.messages)
