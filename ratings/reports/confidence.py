"""How far to trust a report, in sentences: what speaks against it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from arena.judging.audit import Audit
from arena.models import Tournament
from arena.selectors.audit_words import findings_of
from ratings.models import Leaderboard
from ratings.reports.provenance import Given, Kind, Statement, provenance_of
from ratings.selectors import BoardView, wording

ORDER = {"warning": 0, "good": 1, "note": 2}


def statements_of(
    tournament: Tournament, *, view: BoardView, audit: Audit, manifest: Mapping[str, Any], given: Given
) -> list[Statement]:
    found = [
        *_of_the_order(view),
        *_of_the_jury(tournament, audit),
        *_of_the_matches(audit, manifest),
        *provenance_of(tournament, manifest, given),
    ]
    return sorted(found, key=lambda statement: ORDER[statement.kind])


def _of_the_order(view: BoardView) -> Iterator[Statement]:
    if view.run is None:
        yield Statement("warning", _("Nothing is rated, so there is no order to trust."))
        return
    gap = view.verdict.gap
    if gap is not None and gap.separated and gap.lower is not None:
        sentence = _("Who leads is established: the 95% interval of the distance to the second excludes nought.")
        yield Statement("good", sentence)
    elif gap is not None and gap.separated:
        sentence = _("Who leads is established. By how much is not: the results leave the distance without a bound.")
        yield Statement("good", sentence)
    else:
        yield Statement("warning", _("Who leads is not established: which of the first two is better is open."))
    neighbours = [row for table in view.tables for row in table.rows[:-1]]
    apart = sum(bool(row.stored.ahead_of_next) for row in neighbours)
    if neighbours:
        sentence = _("{n} of {all} neighbours in the ranking are told apart. Within shared places nobody is ahead.")
        kind: Kind = "good" if apart == len(neighbours) else "note"
        yield Statement(kind, sentence.format(n=wording.number(apart), all=wording.number(len(neighbours))))
    if view.run.errors == Leaderboard.Errors.SAMPLE:
        sentence = _("The intervals allow for what matches on one sample have in common: one prompt feeds many.")
        yield Statement("good", sentence)
    else:
        sentence = _("The intervals take matches as independent, so the truth is somewhat less certain.")
        yield Statement("note", sentence)


def _of_the_jury(tournament: Tournament, audit: Audit) -> Iterator[Statement]:
    findings = findings_of(audit, tournament.settings.get("imported"))
    cautions = sum(finding.kind == "warning" for finding in findings)
    if cautions:
        sentence = ngettext(
            "The audit of the jury has {n} caution; it stands there in words.",
            "The audit of the jury has {n} cautions; they stand there in words.",
            cautions,
        )
        yield Statement("warning", sentence.format(n=wording.number(cautions)))
    elif audit.judged:
        yield Statement("good", _("The audit of the jury found nothing to warn of."))


def _of_the_matches(audit: Audit, manifest: Mapping[str, Any]) -> Iterator[Statement]:
    totals = audit.totals
    sentence = _("Of {planned} planned matches {decided} are decided, {open} inconclusive and {void} void.")
    complete = totals.planned == totals.decided
    yield Statement(
        "good" if complete else "note",
        sentence.format(
            planned=wording.number(totals.planned),
            decided=wording.number(totals.decided),
            open=wording.number(totals.inconclusive),
            void=wording.number(totals.void),
        ),
    )
    if totals.truncated:
        sentence = ngettext(
            "{n} answer was cut off by its limit of tokens and judged as it was.",
            "{n} answers were cut off by their limit of tokens and judged as they were.",
            totals.truncated,
        )
        yield Statement("note", sentence.format(n=wording.number(totals.truncated)))
    if unknown := manifest["spend"]["calls_of_unknown_cost"]:
        sentence = ngettext(
            "What {n} call cost is not known, so the sum is of the others.",
            "What {n} calls cost is not known, so the sum is of the others.",
            unknown,
        )
        yield Statement("note", sentence.format(n=wording.number(unknown)))
    if reused := manifest["counts"]["trials_reused"]:
        sentence = ngettext(
            "{n} answer was there from an earlier tournament and was used again.",
            "{n} answers were there from earlier tournaments and were used again.",
            reused,
        )
        yield Statement("note", sentence.format(n=wording.number(reused)))
