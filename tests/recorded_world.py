"""A world that is made once in a process and put back, row by row, wherever a test asks for one.

Making a world runs the services that the application runs: half a second. Putting its rows back takes milliseconds,
and a test may do with them what it likes: it has rows of its own, and objects of its own.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, models, transaction

from arena.models import Team, User
from tests.personas import World
from tests.url_samples import make_world

# Well under the number of parameters that PostgreSQL takes in one statement.
PARAMETERS = 10_000


@dataclass(frozen=True)
class Table:
    name: str
    columns: list[str]
    rows: list[tuple[Any, ...]] = field(repr=False)

    def put_back(self) -> None:
        quote = connection.ops.quote_name
        at_once = PARAMETERS // len(self.columns)
        one = f"({', '.join(['%s'] * len(self.columns))})"
        for start in range(0, len(self.rows), at_once):
            rows = self.rows[start : start + at_once]
            with connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO {quote(self.name)} ({', '.join(map(quote, self.columns))}) "
                    f"VALUES {', '.join([one] * len(rows))}",
                    [value for row in rows for value in row],
                )


@dataclass(frozen=True)
class RecordedWorld:
    tables: list[Table]
    files: dict[str, bytes]
    pickled: bytes = field(repr=False)

    def put_back(self) -> World:
        if Team.objects.exists() or User.objects.exists():
            # Somebody was here first and may have the same numbers.
            return make_world()
        with transaction.atomic():
            for table in self.tables:
                table.put_back()
        for name, content in self.files.items():
            if not default_storage.exists(name):
                default_storage.save(name, ContentFile(content))
        world: World = pickle.loads(self.pickled)
        return world


def record_world() -> RecordedWorld:
    """Leaves the database as it was."""
    with transaction.atomic():
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        # What migrations put in is there before and after.
        empty = [name for name in sorted(names) if not _rows(name)[1]]
        world = make_world()
        tables = [Table(name, *found) for name in empty if (found := _rows(name))[1]]
        recorded = RecordedWorld(tables, _files(), pickle.dumps(world))
        transaction.set_rollback(True)
    return recorded


def _rows(table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
        return [column[0] for column in cursor.description], cursor.fetchall()


def _files() -> dict[str, bytes]:
    """Tests may delete them, and a rollback brings no file back."""
    found = {}
    for model in apps.get_models():
        for column in model._meta.get_fields():
            if isinstance(column, models.FileField):
                stored = model._default_manager.exclude(**{column.name: ""})
                for name in stored.values_list(column.name, flat=True):
                    with default_storage.open(name) as file:
                        found[name] = file.read()
    return found
