"""The files of the containers, as far as they can be judged where no container engine is: form and commands."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cryptography.fernet import Fernet
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
ENTRYPOINT = (DOCKER / "entrypoint.sh").read_text(encoding="utf-8")
PROGRAMS = Path(sys.executable).parent
OURS = ("web", "worker", "beat")
DURATION = {"type": "string", "pattern": r"^(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$", "minLength": 2}
NAMES = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1}
# What of the Compose specification these files use; anything else is a slip of the pen.
SERVICE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image", "restart", "healthcheck"],
    "properties": {
        "image": {"type": "string", "pattern": r"^[a-z0-9./-]+:[\w.-]+$"},
        "build": {
            "type": "object",
            "additionalProperties": False,
            "required": ["context"],
            "properties": {"context": {"type": "string"}, "dockerfile": {"type": "string"}},
        },
        "command": NAMES | {"uniqueItems": False},
        "restart": {"enum": ["no", "always", "on-failure", "unless-stopped"]},
        "init": {"type": "boolean"},
        "security_opt": NAMES,
        "cap_drop": NAMES,
        "shm_size": {"type": "string", "pattern": r"^\d+(kb|mb|gb)$"},
        "stop_grace_period": DURATION,
        "secrets": NAMES,
        "volumes": NAMES,
        "ports": NAMES,
        "environment": {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
        "env_file": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path"],
                "properties": {"path": {"type": "string"}, "required": {"type": "boolean"}},
            },
        },
        "deploy": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"replicas": {"type": "integer", "minimum": 1}},
        },
        "depends_on": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["condition"],
                "properties": {"condition": {"enum": ["service_started", "service_healthy"]}},
            },
        },
        "healthcheck": {
            "type": "object",
            "additionalProperties": False,
            "required": ["test"],
            "properties": {
                "test": {"type": "array", "prefixItems": [{"enum": ["CMD", "CMD-SHELL"]}], "minItems": 2},
                "interval": DURATION,
                "timeout": DURATION,
                "start_period": DURATION,
                "retries": {"type": "integer", "minimum": 1},
            },
        },
    },
}
COMPOSE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["services"],
    "patternProperties": {"^x-": {}},
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "services": {"type": "object", "patternProperties": {r"^[a-zA-Z0-9._-]+$": SERVICE}},
        "volumes": {"type": "object", "additionalProperties": {"type": "null"}},
        "secrets": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["file"],
                "properties": {"file": {"type": "string"}},
            },
        },
    },
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


def test_the_file_has_the_form_of_a_compose_file(compose: dict[str, Any]) -> None:
    jsonschema.validate(compose, COMPOSE, cls=jsonschema.Draft202012Validator)


def test_the_client_agrees_where_it_is_there() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode != 0:
        pytest.skip("docker compose is not on this machine")
    command = [docker, "compose", "-f", str(DOCKER / "compose.yaml"), "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def test_whatever_is_named_is_defined(compose: dict[str, Any], services: dict[str, Any]) -> None:
    used_secrets, used_volumes = set(), set()
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        used_secrets |= set(service.get("secrets", []))
        used_volumes |= {volume.partition(":")[0] for volume in service.get("volumes", [])}
        for name, value in service.get("environment", {}).items():
            if name.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in service["secrets"], name
    assert used_secrets == set(compose["secrets"])
    assert used_volumes == set(compose["volumes"])
    assert set(services) == {*OURS, "postgres", "redis"}


def test_every_secret_is_made_by_the_script(compose: dict[str, Any], tmp_path: Path) -> None:
    script = shutil.copy(DOCKER / "make_secrets.sh", tmp_path)
    subprocess.run(["sh", script], check=True, capture_output=True)
    made = {f"./secrets/{path.name}": path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == {secret["file"] for secret in compose["secrets"].values()}
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    Fernet(made["./secrets/field_keys"])
    assert len(made["./secrets/secret_key"]) >= 50
    assert f":{made['./secrets/postgres_password']}@postgres:" in made["./secrets/database_url"]
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert {f"./secrets/{path.name}": path.read_text() for path in (tmp_path / "secrets").iterdir()} == made


def test_only_the_site_is_reached_from_outside_and_only_from_this_machine(services: dict[str, Any]) -> None:
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "web": ["127.0.0.1:8000:8000"]
    }


def test_services_wait_for_what_is_healthy(services: dict[str, Any]) -> None:
    for name in OURS:
        conditions = {wanted["condition"] for wanted in services[name]["depends_on"].values()}
        assert conditions == {"service_healthy"}, name
        assert services[name]["environment"]["DJANGO_SETTINGS_MODULE"] == "config.settings.base"


def test_every_role_of_the_file_is_one_of_the_entrypoint(services: dict[str, Any]) -> None:
    assert [services[name]["command"] for name in OURS] == [[name] for name in OURS]
    assert set(re.findall(r"^  (\w+)\)$", ENTRYPOINT, re.MULTILINE)) == set(OURS)


def command_of(role: str) -> list[str]:
    """The program that a role becomes, with the defaults of its variables."""
    [body] = re.findall(rf"^  {role}\)\n(.*?)^    ;;", ENTRYPOINT, re.MULTILINE | re.DOTALL)
    [command] = re.findall(r"exec (.*)", body.replace("\\\n", " "))
    return shlex.split(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", command))


def test_the_options_of_the_site_are_understood() -> None:
    program, *options = command_of("web")
    assert (PROGRAMS / program).exists()
    from gunicorn.config import Config  # type: ignore[import-untyped]

    parser = Config().parser()
    parsed = parser.parse_args(options)
    assert (parsed.worker_class, int(parsed.workers), int(parsed.threads)) == ("gthread", 2, 8)
    assert parsed.args == ["config.wsgi:application"]
    assert importlib.util.find_spec("config.wsgi") is not None


@pytest.mark.parametrize("role", ["worker", "beat"])
def test_the_options_of_worker_and_beat_are_understood(role: str) -> None:
    from celery.bin.base import CLIContext
    from celery.bin.celery import celery

    from config.celery import app

    program, *arguments = command_of(role)
    assert program == "celery"
    assert (PROGRAMS / program).exists()
    assert arguments[:3] == ["-A", "config", role]
    command = celery.commands[role]
    # Parsing refuses an option that is not there; the values are converted as at a start.
    shared = CLIContext(app=app, no_color=True, workdir=".")
    context = command.make_context(role, arguments[3:], obj=shared)
    if role == "worker":
        assert context.params["concurrency"] == 32
        assert "thread" in str(context.params["pool"])


def test_the_image_holds_what_the_entrypoint_needs() -> None:
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    apps = {"annotation", "arena", "config", "ratings"}
    tracked = {*apps, "static", "templates", "manage.py", "pyproject.toml", "uv.lock"}
    assert set(allowed) == {*tracked, "locale", "docker/entrypoint.sh", "docker/healthcheck.py"}
    for name in allowed:
        assert name == "locale" or (ROOT / name).exists(), name
    dockerfile = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    assert "\nUSER tiltyard\n" in dockerfile
    assert 'ENTRYPOINT ["sh", "/app/docker/entrypoint.sh"]' in dockerfile


@pytest.mark.parametrize("script", ["entrypoint.sh", "make_secrets.sh"])
def test_the_scripts_are_read_by_a_plain_shell(script: str) -> None:
    subprocess.run(["sh", "-n", str(DOCKER / script)], check=True)
