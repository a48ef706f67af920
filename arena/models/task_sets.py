from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from arena.models.base import PublicModel, make_public_id
from arena.models.teams import Team


class TaskSetQuerySet(models.QuerySet["TaskSet"]):
    def newest_versions(self) -> TaskSetQuerySet:
        newer = TaskSet.objects.filter(
            team=models.OuterRef("team"),
            lineage=models.OuterRef("lineage"),
            version__gt=models.OuterRef("version"),
        )
        return self.filter(~models.Exists(newer))


class TaskSet(PublicModel):
    """Immutable once a tournament used it; a changed upload is a new version in its lineage."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="task_sets")
    lineage = models.CharField(max_length=16, default=make_public_id)
    version = models.PositiveIntegerField(default=1)
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    source_name = models.CharField(max_length=255, blank=True)
    content_hash = models.CharField(max_length=64)
    sample_count = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")

    objects = TaskSetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "lineage", "version"], name="task_set_version_once"),
        ]
        indexes = [models.Index(fields=["team", "-created_at"], name="task_set_newest_of_team")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Attachment(PublicModel):
    """A file stored once per team, whatever number of samples refer to it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="attachments")
    sha256 = models.CharField(max_length=64)
    content_type = models.CharField(max_length=60)
    size = models.PositiveBigIntegerField()
    pages = models.PositiveIntegerField(null=True)
    file = models.FileField(upload_to="attachments", max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "sha256"], name="attachment_once_per_team")]

    def __str__(self) -> str:
        return f"{self.content_type} {self.sha256[:12]}"


class Sample(PublicModel):
    task_set = models.ForeignKey(TaskSet, on_delete=models.CASCADE, related_name="samples")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=200)
    messages = models.JSONField()
    category = models.CharField(max_length=200, blank=True)
    reference = models.TextField(blank=True)
    criteria = models.TextField(blank=True)
    tags = models.JSONField(default=list)
    metadata = models.JSONField(default=dict)
    json_schema = models.JSONField(null=True)
    # Covers messages and attachments, and keys the answer cache.
    input_hash = models.CharField(max_length=64)
    # Covers everything, and keys the identity of the set.
    content_hash = models.CharField(max_length=64)
    # What the search field reads: the text of the messages, cut.
    search_text = models.TextField(blank=True)
    attachments: models.ManyToManyField[Attachment, SampleAttachment] = models.ManyToManyField(
        Attachment, through="SampleAttachment", related_name="samples"
    )

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["task_set", "position"], name="sample_position_once"),
            models.UniqueConstraint(fields=["task_set", "key"], name="sample_key_once"),
        ]
        indexes = [models.Index(fields=["task_set", "category"], name="sample_by_category")]

    def __str__(self) -> str:
        return self.key


class SampleAttachment(models.Model):
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="attachment_links")
    attachment = models.ForeignKey(Attachment, on_delete=models.PROTECT, related_name="sample_links")
    # As the sample's messages name it.
    path = models.CharField(max_length=500)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sample", "path"], name="sample_attachment_path_once")]

    def __str__(self) -> str:
        return self.path


class UploadDraft(PublicModel):
    """What lives between preview and save."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="upload_drafts")
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    file = models.FileField(upload_to="drafts", max_length=255)
    original_name = models.CharField(max_length=255)
    name = models.CharField(_("name"), max_length=200)
    # The set of which the upload becomes a new version; null for a new lineage.
    replaces = models.ForeignKey(TaskSet, null=True, on_delete=models.CASCADE, related_name="+")
    inspection = models.JSONField(default=dict)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.original_name
