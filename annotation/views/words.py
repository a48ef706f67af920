"""Figures as words: what is unknown says so, and is never a zero."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.quality import FEW
from ratings.engine.agreement import Estimate, RankAgreement, Wilson

CODINGS = {
    "four_way": gettext_lazy("four kinds"),
    "ties_merged": gettext_lazy("ties as one"),
    "decisive": gettext_lazy("without ties"),
}


@dataclass(frozen=True)
class Cell:
    """A figure, what it rests on, and whether that is little."""

    text: str
    note: str = ""
    is_thin: bool = False


def percent(share: float | None) -> str:
    return "–" if share is None else _("%(n)s%%") % {"n": number_format(round(100 * share) + 0.0, 0)}


def decimal(value: float | None) -> str:
    return "–" if value is None else number_format(round(value, 2) + 0.0, 2).replace("-", "−")


def share_cell(share: Wilson, *, interval: bool = True) -> Cell:
    if share.share is None:
        return Cell("–", "", is_thin=True)
    note = _("%(n)s of %(of)s") % {"n": share.successes, "of": share.trials}
    if interval:
        note += f", {percent(share.lower)}–{percent(share.upper)}"
    return Cell(percent(share.share), note, share.trials < FEW)


def estimate_cell(estimate: Estimate | None) -> Cell:
    if estimate is None:
        return Cell("–", _("no counted vote"), is_thin=True)
    if estimate.value is None:
        return Cell("–", _reason(estimate), is_thin=True)
    ends = f"{decimal(estimate.lower)} … {decimal(estimate.upper)}, " if estimate.lower is not None else ""
    return Cell(decimal(estimate.value), f"{ends}n = {estimate.units}", estimate.units < FEW)


def _reason(estimate: Estimate) -> str:
    words = {
        "no_votes": _("no votes"),
        "no_shared_units": _("no match in common"),
        "no_complete_units": _("no match with every rater's vote"),
        "no_variation": _("undefined: every vote is the same"),
    }
    return words.get(estimate.reason or "", "")


def rank_cell(value: float | None, ranks: RankAgreement) -> Cell:
    note = f"n = {ranks.n}"
    return Cell(decimal(value), note, ranks.n < 5)
