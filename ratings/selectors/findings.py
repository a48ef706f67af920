"""What length and style have to do with the order, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext, gettext_lazy, ngettext

from ratings.models import RatingRun
from ratings.selectors import wording
from ratings.selectors.rows import Row


def findings_of(run: RatingRun, rows: Sequence[Row]) -> list[str]:
    """A count before any model, then length, then the other features."""
    found = []
    if run.length is not None:
        found += [*_length(run.length, rows)]
    if run.style is not None:
        found += [*_style(run.style, people=run.screening is not None)]
    return found


def longer_wins(run: RatingRun) -> str:
    """A caveat where the longer answer wins more often than chance would have it."""
    length = run.length or {}
    if not length.get("decided") or (length.get("share_lower") or 0.0) <= 0.5:
        return ""
    text = gettext("The longer answer won {n} of {all} rounds: judges may like length for its own sake.")
    if run.screening is not None:
        text = gettext("The longer answer won {n} of {all} rounds: length may be liked for its own sake.")
    return text.format(n=wording.number(length["longer_won"]), all=wording.number(length["decided"]))


def _length(length: dict[str, Any], rows: Sequence[Row]) -> Iterable[str]:
    if not length["decided"]:
        yield gettext("How long the answers were is not known, so length was not looked at.")
        return
    count = gettext(
        "Of {all} rounds that one side won and whose answers were not of equal length, "
        "the longer answer won {n} ({share}; 95% interval {low} to {high})."
    )
    yield count.format(
        all=wording.number(length["decided"]),
        n=wording.number(length["longer_won"]),
        share=wording.percent(length["share"]),
        low=wording.percent(length["share_lower"]),
        high=wording.percent(length["share_upper"]),
    )
    if length["status"] == "identified":
        yield _adjusted(rows)
    else:
        yield gettext("Ratings with length held equal are not shown: {reason}.").format(
            reason=_reason(length["status"])
        )


def _adjusted(rows: Sequence[Row]) -> str:
    text = gettext("The effect of length is identified; ratings with length held equal stand in a column of their own.")
    gaps = [
        (row.stored.rating - row.stored.length_adjusted, row)
        for row in rows
        if row.stored.rating is not None and row.stored.length_adjusted is not None
    ]
    if not gaps:
        return text
    gap, row = max(gaps, key=lambda item: abs(item[0]))
    if abs(gap) < 1:
        return text
    if gap > 0:
        more = gettext("{name} owes {points} points to length, not to quality.")
    else:
        more = gettext("{name} would gain {points} points: its short answers cost it that much.")
    return f"{text} {more.format(name=row.label, points=wording.number(abs(gap)))}"


def _reason(status: str) -> str:
    return {
        "interval_includes_zero": gettext("the results are as likely without any effect of length"),
        "too_many_without_gamma": gettext("too many resamples leave the effect without bound"),
        "confounded": gettext("each candidate answers at nearly its own length, so the two cannot be told apart"),
        "not_converged": gettext("the fit did not converge"),
        "no_finite_gamma": gettext("the results do not tell length from quality"),
        "no_difference_in_length": gettext("the answers are of equal length"),
        "no_comparisons": gettext("there are no results to tell it from"),
    }[status]


def _style(style: dict[str, Any], *, people: bool) -> Iterable[str]:
    unclear = []
    for finding in style["findings"]:
        if finding["direction"] == "unclear":
            unclear.append(_name(finding["feature"]))
        else:
            yield _preference(finding, people=people)
    if unclear:
        yield gettext("No clear preference shows for {features}.").format(features=wording.names(unclear))


def _name(feature: str) -> str:
    return {
        "position": gettext("either seat"),
        "verbosity": gettext("more or fewer tokens"),
        "formatting": gettext("more or less formatting"),
    }.get(feature, feature)


# By feature, whether people are among those who judged, and whether more of it is preferred.
_PREFERENCES = {
    ("position", False, True): gettext_lazy("Judges prefer the answer in seat A by {points} ({low} to {high})."),
    ("position", False, False): gettext_lazy("Judges prefer the answer in seat B by {points} ({low} to {high})."),
    ("position", True, True): gettext_lazy(
        "The answer shown first, on the left, is preferred by {points} ({low} to {high})."
    ),
    ("position", True, False): gettext_lazy(
        "The answer shown second, on the right, is preferred by {points} ({low} to {high})."
    ),
    ("verbosity", False, True): gettext_lazy(
        "Judges prefer more tokens: {step} more are worth {points} ({low} to {high})."
    ),
    ("verbosity", False, False): gettext_lazy(
        "Judges prefer fewer tokens: {step} fewer are worth {points} ({low} to {high})."
    ),
    ("verbosity", True, True): gettext_lazy(
        "More tokens are preferred: {step} more are worth {points} ({low} to {high})."
    ),
    ("verbosity", True, False): gettext_lazy(
        "Fewer tokens are preferred: {step} fewer are worth {points} ({low} to {high})."
    ),
    ("formatting", False, True): gettext_lazy(
        "Judges prefer more formatting: one standard deviation is worth {points} ({low} to {high})."
    ),
    ("formatting", False, False): gettext_lazy(
        "Judges prefer less formatting: one standard deviation is worth {points} ({low} to {high})."
    ),
    ("formatting", True, True): gettext_lazy(
        "More formatting is preferred: one standard deviation is worth {points} ({low} to {high})."
    ),
    ("formatting", True, False): gettext_lazy(
        "Less formatting is preferred: one standard deviation is worth {points} ({low} to {high})."
    ),
}


def _preference(finding: dict[str, Any], *, people: bool) -> str:
    points = round(abs(finding["points"]))
    low, high = sorted((abs(finding["lower"]), abs(finding["upper"])))
    text = str(_PREFERENCES[finding["feature"], people, finding["direction"] == "higher"])
    return text.format(
        points=ngettext("{n} rating point", "{n} rating points", points).format(n=wording.number(points)),
        low=wording.number(low),
        high=wording.number(high),
        step=wording.number(finding["step"], 2 if finding["step"] < 10 else 0),
    )
