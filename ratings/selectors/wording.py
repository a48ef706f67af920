"""Numbers as people read them."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from django.utils.formats import get_format, number_format
from django.utils.translation import get_language, gettext, ngettext


def number(value: float | Decimal, digits: int = 0) -> str:
    # Rounded here, since number_format cuts; and adding nought turns -0 into 0.
    rounded = (round(value, digits) if isinstance(value, Decimal) else round(float(value), digits)) + 0
    language = get_language()
    signs = _signs(language)
    if signs is None:
        text = number_format(rounded, decimal_pos=digits, force_grouping=True)
        return text.replace("-", "−")
    return f"{rounded:,.{digits}f}".translate(signs)


@lru_cache(maxsize=50)
def _signs(language: str | None) -> dict[int, str] | None:
    """What a language writes for the signs of a number; None where it groups by other than threes.

    A board has hundreds of numbers, and Django's own way looks each of these up for each of them.
    """
    if get_format("NUMBER_GROUPING", language, use_l10n=True) != 3:
        return None
    thousands = str(get_format("THOUSAND_SEPARATOR", language, use_l10n=True))
    point = str(get_format("DECIMAL_SEPARATOR", language, use_l10n=True))
    return str.maketrans({",": thousands, ".": point, "-": "−"})


def signed(value: float) -> str:
    text = number(value)
    return text if text.startswith("−") or text == "0" else f"+{text}"


def plain(value: float) -> str:
    return number_format(value)


def resampled(share: float) -> str:
    """A share of a thousand resamples: all of them say more than 99 %, and no more than that."""
    if share > 0.995:
        return gettext("over 99%")
    if share < 0.005:
        return gettext("under 1%")
    return percent(share)


def percent(share: float) -> str:
    return gettext("{share}%").format(share=number(100 * share))


def dollars(amount: Decimal) -> str:
    """Three figures that count, whatever the size."""
    if not amount:
        return "$0"
    digits = max(2, 2 - amount.adjusted())
    return f"${number(amount, digits)}"


def tick(value: float, step_digits: int) -> str:
    return number_format(round(value, step_digits), decimal_pos=step_digits, force_grouping=True)


def price_tick(amount: float) -> str:
    """No more digits than it has."""
    return f"${tick(amount, _digits_of(amount))}"


def seconds_tick(duration_ms: float) -> str:
    return gettext("{n} s").format(n=tick(duration_ms / 1000, _digits_of(duration_ms / 1000)))


def _digits_of(value: float) -> int:
    exponent = Decimal(f"{value:.2g}").normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def seconds(duration_ms: float) -> str:
    value = duration_ms / 1000
    return gettext("{n} s").format(n=number(value, 2 if value < 1 else 1 if value < 100 else 0))


def limits(lower: float | None, upper: float | None, *, open_word: str | None = None) -> str:
    """An interval; an end that is None is open."""
    if lower is not None and upper is not None:
        return gettext("{low} to {high}").format(low=number(lower), high=number(upper))
    if lower is not None:
        return f"≥ {number(lower)}"
    if upper is not None:
        return f"≤ {number(upper)}"
    return gettext("open") if open_word is None else open_word


def cell(rating: float | None, lower: float | None, upper: float | None, *, games: int) -> tuple[str, str]:
    """A rating and its limits, for a cell."""
    if not games:
        return "–", ""
    if rating is None:
        return gettext("no number"), ""
    return number(rating), limits(lower, upper)


def matches(count: int) -> str:
    return ngettext("{n} decided match", "{n} decided matches", count).format(n=number(count))


def votes(count: int) -> str:
    return ngettext("{n} vote", "{n} votes", count).format(n=number(count))


def people(count: int) -> str:
    return ngettext("{n} person", "{n} people", count).format(n=number(count))


def p_value(value: float | None) -> str:
    """Four digits, and never a nought that is none."""
    if value is None:
        return gettext("not tested")
    return "< 0.0001" if value < 0.0001 else number(value, 4)


def samples(count: int) -> str:
    return ngettext("{n} sample", "{n} samples", count).format(n=number(count))


def tournaments(count: int) -> str:
    return ngettext("{n} tournament", "{n} tournaments", count).format(n=number(count))


def names(words: list[str]) -> str:
    """A list as a sentence has it."""
    if len(words) < 2:
        return "".join(words)
    return gettext("{most} and {last}").format(most=", ".join(words[:-1]), last=words[-1])
