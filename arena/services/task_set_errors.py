from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from arena.ingest import Inspection
from arena.models import TaskSet


class TaskSetError(Exception):
    """Lists everything that stands in the way, not only the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = list(problems)


class NameTaken(TaskSetError):
    def __init__(self, name: str) -> None:
        super().__init__(
            [
                _("The team has a task set named “%(name)s”: choose another name, or save a new version of that one.")
                % {"name": name}
            ]
        )


class NothingChanged(TaskSetError):
    """The content is that of the newest version, so no new one was made."""

    def __init__(self, task_set: TaskSet) -> None:
        super().__init__(
            [
                _("Nothing changed: version %(version)d of “%(name)s” has exactly this content.")
                % {"version": task_set.version, "name": task_set.name}
            ]
        )
        self.task_set = task_set


class DraftGone(TaskSetError):
    def __init__(self) -> None:
        super().__init__([_("This upload was saved or discarded already.")])


class UploadRefused(TaskSetError):
    """What was read has problems, and the good samples alone were not asked for or are none."""

    def __init__(self, inspection: Inspection) -> None:
        super().__init__([str(problem) for problem in inspection.problems])
        self.inspection = inspection
