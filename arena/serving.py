"""The site in one process: waitress, on loopback unless told otherwise."""

from __future__ import annotations

import socket
import threading
from typing import Any

from django.core.wsgi import get_wsgi_application

FIRST_PORT = 8000
PORTS_TRIED = 50


class Site:
    def __init__(self, *, host: str = "127.0.0.1", port: int | None = None) -> None:
        # Takes a good part of a second to import, which other commands should not pay.
        import waitress

        self.host, self.port = host, port or free_port(host)
        self._server: Any = waitress.create_server(
            get_wsgi_application(),
            host=self.host,
            port=self.port,
            threads=8,
            ident="",
            clear_untrusted_proxy_headers=True,
        )

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        threading.Thread(target=self._server.run, name="tiltyard-site", daemon=True).start()

    def run(self) -> None:
        self._server.run()

    def close(self) -> None:
        self._server.close()


def free_port(host: str) -> int:
    """The first free port from 8000 on, so that a second installation does not fail on the first one's port."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise OSError(f"No port from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} is free on {host}.")
