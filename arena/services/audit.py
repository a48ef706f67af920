from __future__ import annotations

from typing import Any

from arena.models import AuditLog, Team, User


def record(
    *,
    team: Team,
    actor: User | None,
    action: str,
    target: str,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
) -> None:
    """Append to the audit log. Call it inside the transaction of the change it tells of."""
    AuditLog.objects.create(team=team, actor=actor, action=action, target=target[:200], old=old or {}, new=new or {})
