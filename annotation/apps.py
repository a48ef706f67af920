from __future__ import annotations

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from annotation.selectors.concealment import tournaments_concealed_from
        from arena.selectors import concealment

        concealment.conceal(tournaments_concealed_from)
