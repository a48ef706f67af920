from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from arena.embedded import AlreadyRunning, EmbeddedWorker
from arena.models import User
from arena.serving import Site


class Command(BaseCommand):
    help = "Serve the site with the worker inside: one process, SQLite, nothing else to install."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
        parser.add_argument("--port", type=int, help="port (default: the first free one from 8000)")

    def handle(self, *_args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        site = Site(host=options["host"], port=options["port"])
        signal.signal(signal.SIGTERM, _as_interrupt)
        try:
            with EmbeddedWorker():
                self.stdout.write(f"Tiltyard listens on {site.url}  (Ctrl-C stops it)")
                if not User.objects.exists():
                    self.stdout.write("There is no user yet. Make the first one: manage.py createsuperuser")
                site.run()
        except AlreadyRunning as error:
            raise CommandError(f"{error} Stop it first, or set TILTYARD_DATA_DIR to another folder.") from error
        except KeyboardInterrupt:
            self.stdout.write("Stopped. Whatever was running goes on at the next start.")
        finally:
            site.close()


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
