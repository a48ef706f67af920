from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.formats import number_format

register = template.Library()
MONEY_PLACES = 2
MOST_PLACES = 8


@register.filter
def dollars(value: Decimal | None) -> str:
    """Exact to the last digit that is there, and never fewer places than cents have: 0.15, 12.00, 0.000125."""
    if value is None:
        return "–"
    exponent = value.normalize().as_tuple().exponent
    places = -exponent if isinstance(exponent, int) else 0
    return "$" + str(number_format(value, decimal_pos=min(max(places, MONEY_PLACES), MOST_PLACES), force_grouping=True))
