from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Left

from arena.models import Attachment, Sample, SampleAttachment, TaskSet, Team, Tournament

EXCERPT_CHARACTERS = 240


def _count(rows: QuerySet[Any], by: str, what: Any) -> Coalesce:
    counted = rows.order_by().values(by).annotate(n=what).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def task_sets_of(team: Team) -> QuerySet[TaskSet]:
    """The newest version of each lineage; what uses any version uses the lineage."""
    categories = Sample.objects.filter(task_set=OuterRef("pk")).exclude(category="")
    tournaments = Tournament.objects.filter(task_set__lineage=OuterRef("lineage"), team=OuterRef("team"))
    return (
        TaskSet.objects.filter(team=team)
        .newest_versions()
        .annotate(
            category_count=_count(categories, "task_set", Count("category", distinct=True)),
            tournament_count=_count(tournaments, "task_set__lineage", Count("pk")),
        )
        .order_by("-created_at", "-pk")
    )


def versions_of(task_set: TaskSet) -> QuerySet[TaskSet]:
    tournaments = Tournament.objects.filter(task_set=OuterRef("pk"))
    return (
        TaskSet.objects.filter(team=task_set.team_id, lineage=task_set.lineage)
        .select_related("created_by")
        .annotate(tournament_count=_count(tournaments, "task_set", Count("pk")))
        .order_by("-version")
    )


def categories_of(task_set: TaskSet) -> list[tuple[str, int]]:
    rows = task_set.samples.order_by().values_list("category").annotate(n=Count("pk"))
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def samples_of(task_set: TaskSet, *, q: str = "", category: str | None = None) -> QuerySet[Sample]:
    """For lists: an excerpt of the text rather than the messages, which may be megabytes each."""
    samples = task_set.samples.order_by("position")
    if q:
        samples = samples.filter(Q(search_text__icontains=q) | Q(key__icontains=q))
    if category is not None:
        samples = samples.filter(category=category)
    links = SampleAttachment.objects.filter(sample=OuterRef("pk"))
    return samples.only("task_set", "public_id", "position", "key", "category").annotate(
        excerpt=Left("search_text", EXCERPT_CHARACTERS),
        attachment_count=_count(links, "sample", Count("pk")),
    )


def neighbours_of(sample: Sample) -> tuple[Sample | None, Sample | None]:
    siblings = Sample.objects.filter(task_set=sample.task_set_id).only("public_id", "position", "key")
    before = siblings.filter(position__lt=sample.position).order_by("-position").first()
    after = siblings.filter(position__gt=sample.position).order_by("position").first()
    return before, after


def attachments_by_path(sample: Sample) -> dict[str, Attachment]:
    return {link.path: link.attachment for link in sample.attachment_links.select_related("attachment")}


def stream_samples(task_set: TaskSet) -> Iterator[Sample]:
    """For exports: few at a time, as one sample may be 20 MB."""
    return task_set.samples.order_by("position").defer("search_text").iterator(chunk_size=50)


def files_of(task_set: TaskSet) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Each path once, with what opens the file."""
    links = SampleAttachment.objects.filter(sample__task_set=task_set).order_by("path")
    pairs = dict(links.values_list("path", "attachment"))
    attachments = Attachment.objects.in_bulk(set(pairs.values()))
    for path, pk in pairs.items():
        yield path, partial(_open, attachments[pk])


def _open(attachment: Attachment) -> IO[bytes]:
    file: IO[bytes] = attachment.file.storage.open(str(attachment.file.name), "rb")
    return file
