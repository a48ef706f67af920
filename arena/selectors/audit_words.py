"""What an audit comes to, in sentences somebody can repeat, each with the matches behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from arena.judging.audit import Audit, JudgeFigures, Model
from ratings.engine.agreement import Estimate, Wilson

# A judge above these shares, by its whole interval, is spoken of.
MANY_FLIPS = 0.25
MANY_FAILURES = 0.05
MANY_INCONCLUSIVE = 0.2


@dataclass(frozen=True)
class Finding:
    code: str
    sentence: str
    # `warning` changes what the result is worth; `good` is what speaks for it; `note` is worth knowing.
    kind: str = "note"
    # The judge it is about, by its full id; empty for the panel.
    judge: str = ""
    # A filter of the match browser: the matches behind the figure.
    query: Mapping[str, str] = field(default_factory=dict)


def percent(share: float | None, digits: int = 0) -> str:
    if share is None:
        return "–"
    return _("%(number)s%%") % {"number": number_format(round(100 * share, digits) + 0.0, digits)}


def interval(share: Wilson) -> str:
    if share.lower is None or share.upper is None:
        return _("no interval")
    ends = share.lower, share.upper
    # An end that is not at one half must not read as if it were.
    digits = 1 if any(round(100 * end) == 50 and end != 0.5 for end in ends) else 0
    low, high = (percent(end, digits) for end in ends)
    return _("%(low)s to %(high)s") % {"low": low, "high": high}


def share_words(share: Wilson) -> str:
    return _("%(n)s of %(of)s") % {"n": count_words(share.successes), "of": count_words(share.trials)}


def count_words(count: int) -> str:
    return number_format(count, force_grouping=True)


def decimal_words(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else number_format(round(value, digits) + 0.0, digits).replace("-", "−")


def label_words(label: str | None) -> str:
    words = {
        "poor": _("poor"),
        "slight": _("slight"),
        "fair": _("fair"),
        "moderate": _("moderate"),
        "substantial": _("substantial"),
        "almost perfect": _("almost perfect"),
    }
    return words.get(label or "", "")


def reason_words(estimate: Estimate) -> str:
    """Why a statistic has no value."""
    words = {
        "no_votes": _("no votes"),
        "no_shared_units": _("no match with two votes"),
        "no_complete_units": _("no match that every judge voted on"),
        "no_variation": _("undefined: every vote is the same"),
    }
    return words.get(estimate.reason or "", "")


def place_of(judge: Model) -> str:
    """As the match browser names a judge in its address."""
    return f"s{judge.position + 1}" if judge.replacement else str(judge.position + 1)


def listed(names: Iterable[str]) -> str:
    every = list(names)
    if len(every) < 2:
        return "".join(every)
    return _("%(most)s and %(last)s") % {"most": ", ".join(every[:-1]), "last": every[-1]}


def findings_of(audit: Audit, imported: Mapping[str, Any] | None = None) -> list[Finding]:
    """Warnings first. `imported` is what the tournament says of the record it was imported from."""
    found = [finding for judge in audit.judges for finding in _judge(judge)]
    spoken_of = {finding.judge for finding in found if finding.kind == "warning"}
    found += [*_kin(audit), *_panel(audit), *_clean(audit, spoken_of), *_left_out(audit), *_record(imported)]
    order = {"warning": 0, "good": 1, "note": 2}
    return sorted(found, key=lambda finding: order[finding.kind])


# Of one judge ------------------------------------------------------------------------------------------------
def _judge(figures: JudgeFigures) -> Iterator[Finding]:
    judge, place = figures.judge, place_of(figures.judge)

    def warning(code: str, sentence: str, **query: str) -> Finding:
        return Finding(code, sentence, "warning", judge.full_id, {"judge": place, **query})

    seat = figures.first_seat
    if figures.prefers_seat == "first" and seat is not None:
        sentence = _("%(judge)s prefers the first seat: %(share)s of its votes, interval %(interval)s.")
        yield warning("first_seat", sentence % _of(judge, seat), did="first_seat")
    elif figures.prefers_seat and seat is not None:
        sentence = _("%(judge)s prefers the second seat: the first got %(share)s of its votes, interval %(interval)s.")
        yield warning("second_seat", sentence % _of(judge, seat), did="second_seat")
    if figures.longer.stands_out:
        sentence = _("%(judge)s prefers the longer answer: %(share)s of its votes, interval %(interval)s")
        yield warning(
            "longer", sentence % _of(judge, figures.longer.own) + _others(figures.longer.others), did="longer"
        )
    if figures.own is not None and figures.own.stands_out:
        yield warning("itself", _own_words(figures), did="itself")
    if figures.kin.stands_out:
        sentence = _("%(judge)s favours its family: %(share)s of its votes, interval %(interval)s")
        yield warning("kin", sentence % _of(judge, figures.kin.own) + _others(figures.kin.others), did="kin")
    if figures.flips is not None and (figures.flips.lower or 0) > MANY_FLIPS:
        sentence = _(
            "%(judge)s contradicts itself when the seats change: %(share)s of its matches, interval %(interval)s."
        )
        yield warning("flips", sentence % _of(judge, figures.flips), did="flipped")
    failures = figures.failures
    if (failures.lower or 0) > MANY_FAILURES:
        sentence = _(
            "%(judge)s often gives no verdict: its calls failed on %(share)s of its matches, interval %(interval)s."
        )
        yield warning("failures", sentence % _of(judge, failures), did="failed")


def _of(judge: Model, share: Wilson) -> dict[str, str]:
    return {"judge": judge.label, "share": percent(share.share), "interval": interval(share)}


def _others(others: Wilson) -> str:
    if others.share is None:
        return "."
    return _("; the other judges on the same matches %(share)s.") % {"share": percent(others.share)}


def _own_words(figures: JudgeFigures) -> str:
    own = figures.own
    assert own is not None
    return _(
        "%(judge)s judges itself, and favours it: it voted for itself in %(own)s of the matches it played. "
        "The whole panel gave it %(panel)s of these, and %(others)s of the other judges' votes were for it."
    ) % {
        "judge": figures.judge.label,
        "own": share_words(own.votes.own),
        "panel": count_words(own.panel_wins),
        "others": percent(own.votes.others.share),
    }


# Of the panel ------------------------------------------------------------------------------------------------
def _kin(audit: Audit) -> Iterator[Finding]:
    families: dict[int, list[str]] = {}
    judges = {judge.id: judge for judge, _candidate in audit.family_overlaps}
    for judge, candidate in audit.family_overlaps:
        families.setdefault(judge.id, []).append(candidate.label)
    for key, candidates in families.items():
        judge = judges[key]
        sentence = _("Judge %(judge)s is of the family %(family)s, like %(names)s: it may favour its kin.") % {
            "judge": judge.label,
            "family": judge.family,
            "names": listed(candidates),
        }
        yield Finding("family", sentence, "warning", judge.full_id, {"judge": place_of(judge), "did": "kin"})


def _panel(audit: Audit) -> Iterator[Finding]:
    yield from _agreement(audit)
    if audit.seats is not None:
        yield from _seats(audit)
    longer = audit.longer_answer.share
    if longer.share is not None:
        sentence = _("The longer answer won %(of)s decided matches: %(share)s, interval %(interval)s.")
        told = {"of": share_words(longer), "share": percent(longer.share), "interval": interval(longer)}
        uneven = (longer.lower or 0) > 0.5
        yield Finding("longer_won", sentence % told, "warning" if uneven else "note")
    totals = audit.totals
    if audit.judged and totals.inconclusive:
        share = totals.inconclusive / audit.judged
        sentence = ngettext(
            "%(n)s of %(judged)s judged matches (%(share)s) has no result.",
            "%(n)s of %(judged)s judged matches (%(share)s) have no result.",
            totals.inconclusive,
        )
        told = {
            "n": count_words(totals.inconclusive),
            "judged": count_words(audit.judged),
            "share": percent(share),
        }
        kind = "warning" if share >= MANY_INCONCLUSIVE else "note"
        yield Finding("inconclusive", sentence % told, kind, query={"result": "inconclusive"})


def _agreement(audit: Audit) -> Iterator[Finding]:
    found = audit.agreement["ties_merged"]
    alpha = found.alpha
    if found.modal_share.value is None:
        return
    sentence = _("Where two or more judges voted, %(share)s of the votes went to the commonest result.") % {
        "share": percent(found.modal_share.value)
    }
    if alpha.value is not None:
        sentence += " " + _("Beyond chance their agreement is %(label)s (alpha %(alpha)s, AC1 %(ac1)s).") % {
            "label": label_words(alpha.label),
            "alpha": decimal_words(alpha.value),
            "ac1": decimal_words(found.ac1.value),
        }
    weak = alpha.value is not None and alpha.upper is not None and alpha.upper < 0.4 and (found.ac1.value or 0) < 0.4
    yield Finding("agreement", sentence, "warning" if weak else "note", query={"split": "on"})


def _seats(audit: Audit) -> Iterator[Finding]:
    seats = audit.seats
    assert seats is not None
    ties = seats.ties + seats.forced_ties
    sentence = _(
        "Each match was judged in one order. The answer in the first seat won %(first)s, the one in the second "
        "%(second)s, and %(ties)s were ties: of those won, %(share)s from the first seat, interval %(interval)s."
    ) % {
        "first": count_words(seats.first),
        "second": count_words(seats.second),
        "ties": count_words(ties),
        "share": percent(seats.share.share),
        "interval": interval(seats.share),
    }
    lower, upper = seats.share.lower, seats.share.upper
    uneven = lower is not None and upper is not None and not lower <= 0.5 <= upper
    yield Finding("seats_won", sentence, "warning" if uneven else "note")


def _clean(audit: Audit, spoken_of: set[str]) -> Iterator[Finding]:
    clean = [
        figures.judge
        for figures in audit.judges
        if figures.judge.full_id not in spoken_of and any(figures.votes.values()) and figures.first_seat is not None
    ]
    if clean:
        sentence = _("Nothing stands out about %(judges)s.") % {"judges": listed(judge.label for judge in clean)}
        yield Finding("clean", sentence, "good", clean[0].full_id if len(clean) == 1 else "")


def _left_out(audit: Audit) -> Iterator[Finding]:
    for figures in audit.judges:
        if figures.excluded:
            sentence = ngettext(
                "%(judge)s is a candidate too, and was left out of the %(n)s match it plays in.",
                "%(judge)s is a candidate too, and was left out of the %(n)s matches it plays in.",
                figures.excluded,
            )
            told = {"judge": figures.judge.label, "n": count_words(figures.excluded)}
            query = {"judge": place_of(figures.judge), "did": "excluded"}
            yield Finding("left_out", sentence % told, "good", figures.judge.full_id, query)
        if figures.input_skipped:
            sentence = ngettext(
                "%(judge)s could not read the files of %(n)s match.",
                "%(judge)s could not read the files of %(n)s matches.",
                figures.input_skipped,
            )
            told = {"judge": figures.judge.label, "n": count_words(figures.input_skipped)}
            query = {"judge": place_of(figures.judge), "did": "input_skipped"}
            yield Finding("unread", sentence % told, "note", figures.judge.full_id, query)
    if any(figures.first_seat is None and any(figures.votes.values()) for figures in audit.judges):
        yield Finding("no_seats", _("Which seat the judges named is not known, so neither is a liking for a seat."))


def _record(imported: Mapping[str, Any] | None) -> Iterator[Finding]:
    lost = (imported or {}).get("recorded", {}).get("lost_matches") or []
    if lost:
        sentence = ngettext(
            "%(n)s planned match is not in the record.", "%(n)s planned matches are not in the record.", len(lost)
        )
        yield Finding("lost", sentence % {"n": count_words(len(lost))}, "warning")
