"""Whether what the report says can be proven: of records, manifests and configurations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from arena.models import Tournament
from ratings.selectors import wording

Kind = Literal["warning", "good", "note"]
HASHES = ("tournament_id", "config_sha256", "prompts_sha256")


@dataclass(frozen=True)
class Statement:
    kind: Kind
    sentence: str


@dataclass(frozen=True)
class Given:
    """Files that somebody holds against the records; None where none was given."""

    manifest: bytes | None = None
    manifest_name: str = ""
    configuration: bytes | None = None
    configuration_name: str = ""


NOTHING_GIVEN = Given()


def provenance_of(tournament: Tournament, manifest: Mapping[str, Any], given: Given) -> Iterator[Statement]:
    imported = manifest["imported"]
    if imported is None:
        sentence = _(
            "Names, panel, prompts and settings are those pinned when the tournament was planned; prices are those "
            "noted with each call. What was changed since is not in this report."
        )
        yield Statement("good", sentence)
        if not manifest["versions"]:
            yield Statement("note", _("Which versions of the software played it was not recorded."))
    else:
        yield from _record(imported)
    if given.manifest is not None:
        yield _given_manifest(manifest, given)
    if given.configuration is not None:
        yield _given_configuration(tournament, given)


def _record(imported: Mapping[str, Any]) -> Iterator[Statement]:
    sentence = _("Played and recorded by {source}, imported from {file}: nobody was called, what is there was counted.")
    yield Statement("note", sentence.format(source=imported.get("source"), file=imported.get("file")))
    if not (imported.get("recorded") or {}).get("manifest"):
        sentence = _(
            "The record came without a readable manifest. Names and panel are pinned from its candidates and judges; "
            "with which settings it was played is not proven."
        )
        yield Statement("warning", sentence)
    missing = [_missing_words().get(name, name.replace("_", " ")) for name in imported.get("not_recorded") or []]
    if missing:
        yield Statement("note", _("Not recorded: {names}.").format(names=wording.names(missing)))


def _missing_words() -> dict[str, str]:
    return {
        "votes_by_seat_order": _("votes by seat order"),
        "judge_tokens": _("tokens of the judges"),
        "judge_tokens_by_judge": _("tokens of each judge"),
        "judge_cost_by_judge": _("cost of each judge"),
        "judge_latency": _("latency of the judges"),
        "judge_errors": _("errors of the judges"),
        "finish_reasons": _("why answers ended"),
        "prices": _("prices"),
        "seed": _("the seed"),
        "panel": _("the whole panel"),
    }


def _given_manifest(manifest: Mapping[str, Any], given: Given) -> Statement:
    name = given.manifest_name
    try:
        found = json.loads(given.manifest or b"")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        sentence = _("The manifest {name} is not readable: it is no JSON object. Nothing could be compared with it.")
        return Statement("warning", sentence.format(name=name))
    recorded = ((manifest["imported"] or {}).get("recorded") or {}).get("manifest")
    # A record's manifest is compared with the one that came with it, whose hashes are of its own making.
    own = recorded if isinstance(recorded, dict) and found.get("format") != manifest["format"] else manifest
    differing = [key for key in HASHES if found.get(key) != own.get(key)]
    if differing:
        sentence = _("The manifest {name} disagrees with the records in {keys}: it is of another run or was changed.")
        return Statement("warning", sentence.format(name=name, keys=wording.names(differing)))
    sentence = _("The manifest {name} agrees with the records: the same run, settings and prompts by their hashes.")
    return Statement("good", sentence.format(name=name))


def _given_configuration(tournament: Tournament, given: Given) -> Statement:
    name = given.configuration_name
    recorded = tournament.settings.get("headless", {}).get("configuration_sha256")
    if not recorded:
        sentence = _("The configuration {name} cannot be compared: the run recorded no hash of a configuration file.")
        return Statement("warning", sentence.format(name=name))
    if hashlib.sha256(given.configuration or b"").hexdigest() != recorded:
        sentence = _(
            "The configuration {name} disagrees with the hash that the run recorded: it is another file, or was "
            "changed since. This report keeps to what the run recorded."
        )
        return Statement("warning", sentence.format(name=name))
    sentence = _("The configuration {name} is the file that the run was planned from, by its hash.")
    return Statement("good", sentence.format(name=name))
