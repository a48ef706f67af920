"""The parts of a command that plans first and then asks."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from decimal import Decimal, InvalidOperation
from typing import TextIO

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from arena.selectors.plan import Plan
from ratings.headless.plan_text import plan_lines
from ratings.headless.yaml_tree import ConfigError


def dollars(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ArgumentTypeError("must be a number of US dollars") from error
    if not value.is_finite() or not 0 <= value <= 99_999_999 or value != round(value, 4):
        raise ArgumentTypeError("must be a number of US dollars, not negative, with at most 4 decimals")
    return value


def check_database() -> None:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise ConfigError(["The database is not set up for this version. Run: manage.py migrate"])


def say(out: TextIO, text: str) -> None:
    out.write(f"{text}\n")
    out.flush()


def agreed(plan: Plan, *, yes: bool, out: TextIO) -> bool:
    """Show the plan, and ask where somebody can be asked."""
    for line in plan_lines(plan):
        say(out, line)
    if yes:
        return True
    if sys.stdin.isatty() and out.isatty():
        out.write("Start? [y/N] ")
        out.flush()
        if sys.stdin.readline().strip().lower() in {"y", "yes"}:
            return True
        say(out, "Nothing was started.")
    else:
        say(out, "Nothing was started: nobody can be asked here. Add --yes to start it.")
    return False
