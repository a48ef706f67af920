from __future__ import annotations

from django.db import models

from arena.models.teams import Team


class AuditLog(models.Model):
    """Append-only: who did what to which thing, with the value before and after."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="audit_log")
    actor = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=200)
    old = models.JSONField(default=dict)
    new = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="audit_log_newest_of_team")]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
