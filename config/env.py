"""Typed readers of the environment. A value that cannot be read stops the start with its name."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


class EnvironmentFault(RuntimeError):
    """A variable is missing or unreadable; the message says what to do."""


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def flag(name: str, *, default: bool) -> bool:
    raw = os.environ.get(name)
    if raw is None:
        return default
    word = raw.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise EnvironmentFault(f"{name} must be one of 1, 0, true, false, yes, no, on, off; it is {raw!r}.")


def integer(name: str, default: int, *, minimum: int | None = None) -> int:
    raw = os.environ.get(name)
    if raw is None or not raw.strip():
        return default
    try:
        value = int(raw)
    except ValueError as error:
        raise EnvironmentFault(f"{name} must be a whole number; it is {raw!r}.") from error
    if minimum is not None and value < minimum:
        raise EnvironmentFault(f"{name} must be at least {minimum}; it is {value}.")
    return value


def number(name: str, default: float) -> float:
    raw = os.environ.get(name)
    if raw is None or not raw.strip():
        return default
    try:
        return float(raw)
    except ValueError as error:
        raise EnvironmentFault(f"{name} must be a number; it is {raw!r}.") from error


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def url(name: str, default: str = "", *, schemes: tuple[str, ...]) -> str:
    value = secret(name, default)
    if value and urlsplit(value).scheme not in schemes:
        raise EnvironmentFault(f"{name} must be a URL that begins with one of {', '.join(schemes)}.")
    return value


def secret(name: str, default: str | None = None) -> str:
    """Read NAME, or the file that NAME_FILE points to (as container secrets are mounted)."""
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise EnvironmentFault(f"{name}_FILE points to {path}, which cannot be read: {error}.") from error
    value = text(name)
    if value:
        return value
    if default is None:
        raise EnvironmentFault(f"Set {name} (or {name}_FILE). See .env.example for how to make one.")
    return default


def load_dotenv(path: Path) -> None:
    """Take NAME=value lines of a local file; what the environment already has wins."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and name and not name.startswith("#"):
            os.environ.setdefault(name.strip(), value.strip().strip("\"'"))
