from __future__ import annotations

from django.db import models

from arena.models.teams import Team


class RenderedText(models.Model):
    """Sanitised HTML of one text, kept because rendering costs 50 ms of CPU per 8 KB."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    renderer_version = models.CharField(max_length=20)
    html = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "digest", "renderer_version"], name="rendered_text_once")
        ]

    def __str__(self) -> str:
        return self.digest[:12]
