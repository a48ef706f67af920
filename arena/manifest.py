"""What a run was, in JSON: enough to prove two runs comparable and to derive every rating again.

Pure reads of what was pinned when the tournament was made and of what it recorded, never of live settings. No
key is in it: endpoints are named by their hosts alone.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Count, QuerySet, Sum

from arena.models import Ballot, Call, Candidate, Decision, Judge, Jury, Match, Tournament, Trial, Verdict

FORMAT = "tiltyard.manifest"
SCHEMA_VERSION = 1
PACKAGES = ("django", "httpx", "numpy", "scipy")
# Parameters by which vendors turn reasoning on or off.
REASONING = (
    "reasoning",
    "reasoning_effort",
    "thinking",
    "output_config",
    "thinkingConfig",
    "thinking_config",
    "enable_thinking",
    "chat_template_kwargs",
)
VENDOR_DEFAULT = "vendor-default"


def versions() -> dict[str, str]:
    """Of what a result may hang on. A run keeps its own under `settings["versions"]`."""
    return {
        "tiltyard": _own_version(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


@cache
def _own_version() -> str:
    path = Path(settings.BASE_DIR) / "pyproject.toml"
    if not path.exists():
        return "unknown"
    found: str = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["version"]
    return found


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def manifest_of(tournament: Tournament) -> dict[str, Any]:
    """The same rows give the same text; keys are sorted."""
    jury = tournament.juries.get(primary=True)
    candidates = [_entrant(row) for row in tournament.candidates.all()]
    judges = [_entrant(row) | {"replacement": row.replacement} for row in jury.judges.all()]
    chosen = _settings(tournament, jury)
    manifest = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "tournament_id": tournament.public_id,
        "name": tournament.name,
        "status": tournament.status,
        "reason": tournament.reason,
        "reason_text": tournament.reason_text,
        "created_at": _moment(tournament.created_at),
        "started_at": _moment(tournament.started_at),
        "finished_at": _moment(tournament.finished_at),
        "seed": tournament.seed,
        # Of what record the tournament was made, and what that record says itself; null where it was played here.
        "imported": tournament.settings.get("imported"),
        "settings": chosen,
        "config_sha256": digest(
            {
                "settings": chosen,
                "candidates": [_asked(entrant) for entrant in candidates],
                "judges": [_asked(entrant) | {"replacement": entrant["replacement"]} for entrant in judges],
            }
        ),
        **_prompts(tournament),
        "candidates": candidates,
        "judges": [entrant for entrant in judges if not entrant["replacement"]],
        "replacement_judges": [entrant for entrant in judges if entrant["replacement"]],
        "hosts": sorted({entrant["host"] for entrant in (*candidates, *judges) if entrant["host"]}),
        "hosts_reached": _hosts_reached(tournament),
        "prices_used": _prices_used(tournament),
        "counts": _counts(tournament, jury),
        "spend": _spend(tournament),
        "versions": tournament.settings.get("versions") or versions(),
    }
    ordered: dict[str, Any] = _sorted(manifest)
    return ordered


def digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _settings(tournament: Tournament, jury: Jury) -> dict[str, Any]:
    baseline = tournament.baseline
    return {
        "pairing": tournament.pairing,
        "max_matches": tournament.max_matches,
        "step_size": tournament.step_size,
        "seed": tournament.seed,
        "categories": sorted(tournament.categories),
        "baseline": baseline.full_id if baseline else None,
        "baseline_weight": tournament.baseline_weight,
        "budget_usd": _money(tournament.budget_usd),
        "protocol": jury.protocol,
        # How it went on after it had ended, each time with a seed of its own.
        "extensions": tournament.settings.get("extensions", []),
    }


def _entrant(row: Candidate | Judge) -> dict[str, Any]:
    pinned: Mapping[str, Any] = row.snapshot
    parameters = pinned.get("parameters") or {}
    reasoning = {name: parameters[name] for name in REASONING if name in parameters}
    return {
        "full_id": row.full_id,
        "label": row.label,
        "model_id": pinned.get("model_id"),
        "provider": pinned.get("provider"),
        "kind": pinned.get("kind"),
        "host": _host(pinned.get("base_url")),
        "family": pinned.get("family"),
        "system_prompt": pinned.get("system_prompt"),
        "parameters": parameters,
        "reasoning": reasoning or VENDOR_DEFAULT,
        "max_tokens": pinned.get("max_tokens"),
        "pdf_input": pinned.get("pdf_input"),
        "image_input": pinned.get("image_input"),
        "fingerprint": pinned.get("fingerprint"),
        "price": pinned.get("price"),
    }


def _asked(entrant: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the answers; a name, a price or a family does not."""
    names = ("model_id", "provider", "host", "system_prompt", "parameters", "max_tokens", "pdf_input", "image_input")
    return {name: entrant[name] for name in names}


def _host(base_url: Any) -> str | None:
    """Without what may stand before the @, should it ever."""
    return urlsplit(base_url).netloc.rpartition("@")[2].lower() if isinstance(base_url, str) and base_url else None


def _prompts(tournament: Tournament) -> dict[str, Any]:
    task_set = tournament.task_set
    samples = task_set.samples.order_by("position")
    if tournament.categories:
        samples = samples.filter(category__in=tournament.categories)
    # Text and attachments are in the input hash.
    prompts = [list(pair) for pair in samples.values_list("input_hash", "category")]
    return {
        "task_set": {
            "id": task_set.public_id,
            "name": task_set.name,
            "version": task_set.version,
            "source_name": task_set.source_name,
            "named_as": tournament.settings.get("headless", {}).get("task_set"),
            "content_hash": task_set.content_hash,
            "samples": task_set.sample_count,
        },
        "prompt_count": len(prompts),
        "prompts_sha256": digest(prompts),
    }


def _calls(tournament: Tournament) -> QuerySet[Call]:
    """What the run itself was; another jury over its answers comes after it and changes nothing of it."""
    return Call.objects.filter(tournament=tournament, rejudge=None)


def _hosts_reached(tournament: Tournament) -> list[str]:
    """Where answers and verdicts came from, those of reused answers too."""
    trials = Trial.objects.filter(requests__tournament=tournament).exclude(host="")
    verdicts = Verdict.objects.filter(tournament=tournament, rejudge=None).exclude(host="")
    calls = _calls(tournament).exclude(host="")
    return sorted(
        {
            host
            for rows in (trials, verdicts, calls)
            for host in rows.order_by().values_list("host", flat=True).distinct()
        }
    )


def _prices_used(tournament: Tournament) -> list[dict[str, Any]]:
    """As copied onto the calls, by full id; more than one where a price changed on the way."""
    rows = (
        _calls(tournament)
        .order_by()
        .values_list("language_model", "input_price_usd", "output_price_usd", "cost_source")
        .annotate(calls=Count("pk"))
    )
    names = _names(tournament)
    used = [
        {
            "model": names.get(model, "unknown"),
            "input_per_million_usd": _money(price_in),
            "output_per_million_usd": _money(price_out),
            "cost_source": source,
            "calls": calls,
        }
        for model, price_in, price_out, source, calls in rows
    ]
    return sorted(used, key=lambda row: json.dumps(row, sort_keys=True))


def _names(tournament: Tournament) -> dict[int | None, str]:
    candidates = tournament.candidates.values_list("language_model", "full_id")
    judges = Judge.objects.filter(jury__tournament=tournament).values_list("language_model", "full_id")
    return {**dict(judges), **dict(candidates)}


def _counts(tournament: Tournament, jury: Jury) -> dict[str, Any]:
    requests = tournament.trial_requests
    trials = Trial.objects.filter(requests__tournament=tournament)
    ballots: dict[str, dict[str, int]] = defaultdict(dict)
    rows = (
        Ballot.objects.filter(jury=jury).order_by().values_list("judge__full_id", "status").annotate(count=Count("pk"))
    )
    for judge, status, count in rows:
        ballots[judge][status] = count
    verdicts = Verdict.objects.filter(ballot__jury=jury)
    decisions = Decision.objects.current().filter(jury=jury)
    return {
        "matches": _by(Match.objects.filter(tournament=tournament), "status"),
        "matches_total": tournament.matches.count(),
        "forced_ties": tournament.matches.filter(forced_tie=True).count(),
        "steps": tournament.steps.count(),
        "trials": _by(trials, "status"),
        "trials_reused": requests.filter(cached=True).count(),
        "trials_skipped": _by(trials.exclude(skip_code=""), "skip_code"),
        "answers_truncated": trials.filter(truncated=True).count(),
        "verdicts": _by(verdicts, "status"),
        "verdict_errors": _by(verdicts.exclude(error_code=""), "error_code"),
        "ballots": dict(ballots),
        "flipped": Ballot.objects.filter(jury=jury, flipped=True).count(),
        "decisions": _by(decisions, "outcome"),
        "decision_reasons": _by(decisions, "reason"),
        "calls": _by(_calls(tournament), "purpose"),
        "calls_by_status": _by(_calls(tournament), "status"),
    }


def _by(rows: Any, field: str) -> dict[str, int]:
    return dict(rows.order_by().values_list(field).annotate(count=Count("pk", distinct=True)))


def _spend(tournament: Tournament) -> dict[str, Any]:
    calls = _calls(tournament)
    total = calls.aggregate(cost=Sum("cost_usd"), tokens_in=Sum("input_tokens"), tokens_out=Sum("output_tokens"))
    return {
        # Of what is known; the calls without a cost are counted beside it.
        "cost_usd": _money(total["cost"] or Decimal(0)),
        "calls_of_unknown_cost": calls.filter(cost_usd=None).count(),
        "input_tokens": total["tokens_in"] or 0,
        "output_tokens": total["tokens_out"] or 0,
        "by_purpose_usd": {
            purpose: _money(cost)
            for purpose, cost in calls.order_by().values_list("purpose").annotate(cost=Sum("cost_usd"))
        },
    }


def _money(value: Decimal | None) -> str | None:
    """As text: dollars are decimal, and a binary fraction would not be what was booked."""
    return None if value is None else format(value.normalize(), "f")


def _moment(value: Any) -> str | None:
    return None if value is None else value.isoformat()


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_sorted(item) for item in value]
    return value
