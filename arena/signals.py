"""The one signal of the house. It is only a hint: what is due is always derived from rows."""

from __future__ import annotations

from django.dispatch import Signal

# Arguments: tournament_id, step_number.
step_finished = Signal()
