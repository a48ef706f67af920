"""Two juries of a tournament, side by side."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from arena.models import Jury, Match, Role, Tournament
from arena.views.access import TeamRequest, team_view
from ratings.selectors.comparison import Changed, comparison_of
from ratings.selectors.drawn import drawn_tables
from ratings.views.boards import READ

CHANGED_PER_PAGE = 50


def jury_name(jury: Jury) -> str:
    return jury.name or str(_("the tournament's jury"))


@team_view(Role.MEMBER, methods=READ)
def jury_compare(request: TeamRequest, tournament: str) -> HttpResponse:
    """Without a choice, the tournament's own jury and the newest rejudge."""
    found = get_object_or_404(Tournament.objects.select_related("team"), team=request.team, public_id=tournament)
    juries = list(Jury.objects.select_related("tournament").filter(tournament=found).order_by("-primary", "pk"))
    if not juries:
        raise Http404("no jury")
    one = _chosen(juries, request.GET.get("one", ""), juries[0])
    other = _chosen(juries, request.GET.get("other", ""), juries[-1])
    context: dict[str, Any] = {
        "nav_section": "tournaments",
        "tournament": found,
        "juries": [(jury, jury_name(jury)) for jury in juries],
        "one": one,
        "other": other,
        "names": [jury_name(one), jury_name(other)],
    }
    if one.pk != other.pk:
        comparison = comparison_of(one, other)
        page = Paginator(comparison.changed, CHANGED_PER_PAGE).get_page(request.GET.get("page"))
        context |= {
            "comparison": comparison,
            "page_obj": page,
            "rows": [_changed(match) for match in page],
            "sides": [
                (jury, jury_name(jury), view, drawn_tables(view))
                for jury, view in ((one, comparison.one), (other, comparison.other))
            ],
        }
    return render(request, "ratings/juries.html", context)


def _chosen(juries: list[Jury], public_id: str, default: Jury) -> Jury:
    if not public_id:
        return default
    found = next((jury for jury in juries if jury.public_id == public_id), None)
    if found is None:
        raise Http404("no such jury")
    return found


def _changed(match: Match) -> Changed:
    words = {"first": match.first.label, "second": match.second.label, "tie": _("a tie")}
    one, other = (words.get(getattr(match, name), _("inconclusive")) for name in ("outcome_one", "outcome_other"))
    return Changed(match, str(one), str(other))
