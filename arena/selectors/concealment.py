"""What is kept from somebody although the role would allow it.

Whoever votes blind must not open what names the answers. Which tournaments that is about is known to the app
above, which puts its rule in here when Django starts: `arena` asks and never imports it.
"""

from __future__ import annotations

from collections.abc import Callable

from arena.models import Membership, Tournament

# From a membership to the keys of the tournaments whose names, boards, matches and juries it may not open now.
Rule = Callable[[Membership], set[int]]
_rules: list[Rule] = []


def conceal(rule: Rule) -> None:
    """Register a rule. It is asked for every page of a tournament, so it should cost one query at most."""
    if rule not in _rules:
        _rules.append(rule)


def concealed_tournaments(membership: Membership) -> set[int]:
    return set().union(*(rule(membership) for rule in _rules))


def is_concealed(membership: Membership, tournament: str) -> bool:
    """Whether this tournament, by the id in its URL, is kept from the member now."""
    hidden = concealed_tournaments(membership)
    return bool(hidden) and Tournament.objects.filter(pk__in=hidden, public_id=tournament).exists()
