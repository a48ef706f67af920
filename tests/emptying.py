"""The database emptied after a test that committed: the tables that hold rows, and those alone.

Django's own way takes locks and new files for every table on PostgreSQL, and then makes permissions and content types
anew: half a second after each such test, for a handful of rows.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase


def empty_quickly() -> None:
    """To be called once, right after the migrations: what they put in stays."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    emptied = sorted(set(names) - _with_rows(names))

    def teardown(_: Any) -> None:
        if found := _with_rows(emptied):
            # Foreign keys are looked at when all of it is gone.
            with transaction.atomic(), connection.cursor() as cursor:
                for name in found:
                    cursor.execute(f"DELETE FROM {connection.ops.quote_name(name)}")

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[attr-defined]


def _with_rows(names: list[str]) -> set[str]:
    if not names:
        return set()
    one = "SELECT '{0}' WHERE EXISTS (SELECT 1 FROM {1})"
    question = " UNION ALL ".join(one.format(name, connection.ops.quote_name(name)) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(question)
        return {row[0] for row in cursor.fetchall()}
