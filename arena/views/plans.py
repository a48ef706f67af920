from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from arena.forms.tournaments import PRESET_NOTES, PlanForm, with_standard_criteria
from arena.models import Role
from arena.selectors.language_models import ModelTest, last_tests_of
from arena.selectors.plan import Plan, plan_of
from arena.selectors.preview import preview_of
from arena.services.probes import probe_models
from arena.services.tournaments import TournamentError, create_tournament, start_tournament
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other

# `update` shows the plan, `criteria` with the standard criteria written out; `review` asks once more with the
# totals; the others write.
STRICT = {"draft", "review", "start"}
NOT_CARRIED = {"csrfmiddlewaretoken", "action"}
UNPROCESSABLE = 422


@team_view(Role.ADMIN)
def tournament_plan(request: TeamRequest) -> HttpResponse:
    if request.method != "POST":
        form = PlanForm(team=request.team, task_set=request.GET.get("task_set", ""))
        return _page(request, form, None)
    # htmx sends the button that was pressed last along with a change, which must not save anything.
    action = "update" if request.htmx else request.POST.get("action", "update")
    data = with_standard_criteria(request.POST) if action == "criteria" else request.POST
    form = PlanForm(data, team=request.team, strict=action in STRICT)
    plan = plan_of(form.spec()) if form.is_valid() else None
    if action not in STRICT:
        return _page(request, form, plan)
    if plan is not None and plan.problems:
        _refuse(form, plan.problems)
    if plan is None or not form.is_valid():
        return _page(request, form, plan, status=UNPROCESSABLE)
    if action == "review":
        carried = [(name, value) for name, values in _carried(request) for value in values]
        return render(request, "arena/tournaments/review.html", {**_context(form, plan), "carried": carried})
    return _create(request, form, plan, starts=action == "start")


@never_cache
@team_view(Role.ADMIN, methods=("POST",))
def tournament_plan_test(request: TeamRequest) -> HttpResponse:
    """A tiny call to each model that was chosen, and the plan again with what they said."""
    form = PlanForm(request.POST, team=request.team)
    if not form.is_valid():
        return _page(request, form, None, status=UNPROCESSABLE)
    spec = form.spec()
    problems = probe_models(language_models=spec.models, actor=request.user)
    for model in spec.models:
        model.refresh_from_db(fields=["learned"])
    return _page(request, form, plan_of(spec), tests=last_tests_of(spec.models, problems), tested=True)


def _create(request: TeamRequest, form: PlanForm, plan: Plan, *, starts: bool) -> HttpResponse:
    try:
        tournament = create_tournament(spec=plan.spec, actor=request.user)
        if starts:
            start_tournament(tournament=tournament, actor=request.user)
    except TournamentError as error:
        _refuse(form, error.problems)
        return _page(request, form, plan, status=UNPROCESSABLE)
    return see_other("arena:tournament-detail", team=request.team.public_id, tournament=tournament.public_id)


def _refuse(form: PlanForm, problems: list[str]) -> None:
    for problem in problems:
        form.add_error(None, problem)


def _carried(request: TeamRequest) -> list[tuple[str, list[str]]]:
    return [(name, values) for name, values in request.POST.lists() if name not in NOT_CARRIED]


def _context(form: PlanForm, plan: Plan | None) -> dict[str, object]:
    return {"nav_section": "tournaments", "form": form, "plan": plan}


def _page(
    request: TeamRequest,
    form: PlanForm,
    plan: Plan | None,
    *,
    status: int = 200,
    tests: Sequence[ModelTest] = (),
    tested: bool = False,
) -> HttpResponse:
    unfinished = form.is_bound and plan is None
    if plan is not None and not tests:
        tests = last_tests_of(plan.spec.models)
    context = {
        **_context(form, plan),
        "preview": preview_of(plan) if plan is not None else None,
        "tests": tests,
        "tests_failed": sum(not test.ok for test in tests if test.at is not None or test.problem),
        "tests_open": tested,
        "preset_notes": PRESET_NOTES,
        "unfinished": unfinished,
        # What the browser shows of these hangs on a choice that was made a moment ago.
        "new_parts": request.POST.get("parts_of") != request.POST.get("preset"),
        "new_categories": request.POST.get("categories_of") != request.POST.get("task_set"),
        "title": _("Plan a tournament"),
    }
    template = "arena/tournaments/plan.html"
    if request.htmx and request.method == "POST":
        template = "arena/tournaments/_plan_update.html"
    return render(request, template, context, status=status)
