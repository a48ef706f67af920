"""python -m arena.llm.demo --port 8399"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from arena.llm.demo.catalogue import DEMO_LABEL, MODELS_BY_ID
from arena.llm.demo.server import HOST, serve
from arena.llm.demo.settings import DEMO_FAULTS, DemoSettings, Latency


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_serve(options.port, settings_from(options)))
    except OSError as error:
        parser.exit(1, f"Port {options.port} cannot be used: {error.strerror}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m arena.llm.demo", description=DEMO_LABEL)
    parser.add_argument("--port", type=int, default=8399, help="on loopback; 0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=120.0, help="mean time of an answer")
    parser.add_argument("--fixed", action="store_true", help="every answer takes exactly that long")
    for name, text in (
        ("rate-limit", "first attempts answered 429"),
        ("server-error", "first attempts answered 503"),
        ("disconnect", "first attempts hung up on"),
        ("malformed", "verdicts whose first reply is broken JSON, of every judge"),
    ):
        parser.add_argument(f"--{name}-share", type=_share, metavar="SHARE", help=text)
    models = sorted(MODELS_BY_ID)
    parser.add_argument("--always-fail", action="append", default=[], choices=models, metavar="MODEL")
    parser.add_argument("--silent", action="append", default=[], choices=models, metavar="MODEL")
    parser.add_argument("--no-faults", action="store_true", help="none but those named here")
    return parser


def settings_from(options: argparse.Namespace) -> DemoSettings:
    settings = DemoSettings.quiet() if options.no_faults else DemoSettings(faults=DEMO_FAULTS)
    named = {
        "rate_limit_share": options.rate_limit_share,
        "server_error_share": options.server_error_share,
        "disconnect_share": options.disconnect_share,
        "malformed_share": options.malformed_share,
    }
    faults = replace(
        settings.faults,
        **{name: share for name, share in named.items() if share is not None},
        always_fail=frozenset(options.always_fail),
        silent=frozenset(options.silent),
    )
    if options.malformed_share is not None:
        faults = replace(faults, malformed_judges=None)
    latency_ms = options.latency_ms
    latency = Latency.fixed(latency_ms) if options.fixed else Latency(latency_ms * 0.5, latency_ms * 1.5)
    return replace(settings, faults=faults, latency=latency)


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must lie between 0 and 1")
    return value


async def _serve(port: int, settings: DemoSettings) -> None:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("there is no running task")
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await serve(port, settings, on_open=_announce)
    except asyncio.CancelledError:
        sys.stdout.write("Stopped.\n")


def _announce(port: int) -> None:
    sys.stdout.write(f"Demo endpoint at http://{HOST}:{port}/v1 (key: {DemoSettings().api_key}). {DEMO_LABEL}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
