"""What processes and the machine have used so far, as Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    cpu_s: float
    machine_busy_s: float
    machine_total_s: float


def usage_of(pids: Sequence[int]) -> Usage:
    machine = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = machine[3] + machine[4]
    return Usage(sum(map(cpu_s, pids)), (sum(machine) - idle) / TICKS, sum(machine) / TICKS)


def cpu_s(pid: int) -> float:
    # The name of a process may hold spaces; the fields are counted after it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))
