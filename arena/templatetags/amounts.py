"""Money and time as people read them; what is not known is said to be unknown."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext as _

register = template.Library()


@register.filter
def usd(value: Decimal | float | None) -> str:
    """Cents where there are dollars, more places where there are none."""
    if value is None:
        return _("unknown")
    amount = Decimal(value)
    places = 2 if abs(amount) >= 1 or not amount else 4 if abs(amount) >= Decimal("0.001") else 6
    return f"${number_format(round(amount, places), decimal_pos=places, use_l10n=True, force_grouping=True)}"


@register.filter
def span(seconds: float | None) -> str:
    if seconds is None:
        return _("unknown")
    if seconds < 90:
        return _("%(n)d s") % {"n": max(1, round(seconds))}
    minutes = round(seconds / 60)
    if minutes < 90:
        return _("%(n)d min") % {"n": minutes}
    return _("%(hours)d h %(minutes)d min") % {"hours": minutes // 60, "minutes": minutes % 60}


@register.filter
def milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 1000:
        return _("%(n)d ms") % {"n": round(value)}
    return _("%(n)s s") % {"n": number_format(round(value / 1000, 1), decimal_pos=1)}


@register.filter
def price(value: Decimal | None) -> str:
    """To the last place there is, and never fewer than cents have: $0.60, $12.00, $0.000125."""
    if value is None:
        return "–"
    places = len(format(value.normalize(), "f").partition(".")[2])
    return f"${number_format(value, decimal_pos=max(places, 2), use_l10n=True, force_grouping=True)}"


@register.filter
def percent(share: float | None) -> str:
    """Whole percents, and never 0% of what is something."""
    if share is None:
        return "–"
    if 0 < share < 0.01:
        return _("under 1%")
    return _("%(n)s%%") % {"n": number_format(round(share * 100), decimal_pos=0, use_l10n=True, force_grouping=True)}
