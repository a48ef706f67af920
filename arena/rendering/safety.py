"""The last word on what reaches a page, whatever the steps before did."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nh3

URL_SCHEMES = frozenset({"http", "https", "mailto"})

_TEXT_TAG_NAMES = """
    a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul
"""
_MATH_TAG_NAMES = """
    math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover
    mmultiscripts mprescripts none mtable mtr mtd mlabeledtr mstyle mpadded mphantom menclose
"""
_MATH_ATTRIBUTE_NAMES = """
    accent accentunder columnalign columnlines columnspacing displaystyle fence form largeop linethickness
    mathvariant movablelimits notation rowlines rowspacing scriptlevel separator stretchy symmetric
"""
_MATH_TAGS = frozenset(_MATH_TAG_NAMES.split())
_MATH_VALUE = re.compile(r"[a-z0-9 .+-]{1,60}")
_MATH_WIDTH = re.compile(r"-?(?:0?\.\d{1,6}|[0-2](?:\.\d{1,6})?)(?:em|ex)?")
_OWN_CLASSES = {
    "code": {"math-source"},
    "div": {"math-block", "scroll"},
    "pre": {"code"},
    "span": {"missing-image"},
    "td": {"center", "right"},
    "th": {"center", "right"},
}


@functools.cache
def highlight_classes() -> frozenset[str]:
    from pygments.token import STANDARD_TYPES

    return frozenset(short for short in STANDARD_TYPES.values() if short)


def sanitise(markup: str) -> str:
    return _cleaner().clean(markup)


@functools.cache
def _cleaner() -> nh3.Cleaner:
    import nh3

    attributes = {tag: set(_MATH_ATTRIBUTE_NAMES.split()) for tag in _MATH_TAGS}
    attributes["math"].add("display")
    attributes["mspace"].add("width")
    attributes |= {"a": {"href"}, "ol": {"start"}, "*": set()}
    return nh3.Cleaner(
        tags={*_TEXT_TAG_NAMES.split(), *_MATH_TAGS},
        clean_content_tags={"script", "style"},
        attributes=attributes,
        attribute_filter=_filtered,
        allowed_classes={**_OWN_CLASSES, "span": _OWN_CLASSES["span"] | highlight_classes()},
        link_rel="nofollow noopener noreferrer",
        url_schemes=set(URL_SCHEMES),
        url_relative="deny",
    )


def _filtered(tag: str, name: str, value: str) -> str | None:
    if name in ("href", "class", "rel"):
        return value
    if name == "start":
        return value if value.isascii() and value.isdigit() and len(value) < 10 else None
    if name == "width":
        # A wide space could push the page about.
        return value if _MATH_WIDTH.fullmatch(value) else None
    return value if _MATH_VALUE.fullmatch(value) else None
