"""A board as lines of a terminal."""

from __future__ import annotations

from typing import Any


def board_lines(board: dict[str, Any]) -> list[str]:
    rows = board["ratings"]
    width = max((len(row["model"]) for row in rows), default=0)
    table = [f"  {row['model'].ljust(width)}  {_rated(row)}  {_counted(row)}" for row in rows]
    return [board["verdict"], *table]


def _rated(row: dict[str, Any]) -> str:
    if row["rating"] is None:
        return "   not rated           "
    ends = [row["confidence_interval"][end] for end in ("lower", "upper")]
    low, high = ("open" if end is None else f"{end:.0f}" for end in ends)
    return f"{row['rating']:7.0f}  {low:>5} to {high:<5}"


def _counted(row: dict[str, Any]) -> str:
    return f"{row['wins']} won, {row['losses']} lost, {row['ties']} tied"
