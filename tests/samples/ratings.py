from __future__ import annotations

from ratings import services
from tests.personas import Side
from tests.ratings.voting_world import anonymous, campaign_over
from tests.ratings.world import tournament
from tests.url_samples import UrlSample


def extend(side: Side) -> None:
    played = tournament(
        [f"{side.canary}-ada", f"{side.canary}-bram"],
        [(0, 1, "first", 5), (0, 1, "second", 2)],
        team=side.team,
        name=f"{side.canary}-board",
    )
    side.objects["board_tournament"] = played.tournament
    services.refit_due_boards()
    board = services.leaderboard_for(played.tournament, played.jury)
    side.objects["rating_board"] = board
    side.objects["rating_run"] = board.runs.get()
    campaign = campaign_over(side.team, played.tournament)
    side.objects["screened_session"] = anonymous(campaign)
    people = services.Method(ties="rao_kupper", source="human")
    side.objects["people_board"] = services.board_of_jury(played.tournament, played.jury, people)


def _board(side: Side) -> dict[str, object]:
    return {"team": side.team_id, "tournament": side.objects["board_tournament"].public_id}


def _team(side: Side) -> dict[str, object]:
    return {"team": side.team_id}


def _by_id(side: Side) -> dict[str, object]:
    return _team(side) | {"board": side.objects["rating_board"].public_id}


def _table(side: Side) -> dict[str, object]:
    return _by_id(side) | {"table": "comparisons"}


def _run(side: Side) -> dict[str, object]:
    return _by_id(side) | {"run": side.objects["rating_run"].public_id}


def _session(side: Side) -> dict[str, object]:
    board, rater = side.objects["people_board"], side.objects["screened_session"]
    return _team(side) | {"board": board.public_id, "rater": rater.public_id}


SAMPLES = {
    "ratings:board": UrlSample(_board),
    "ratings:board-fragment": UrlSample(_board, headers={"HX-Request": "true"}),
    "ratings:progress": UrlSample(_board),
    "ratings:progress-fragment": UrlSample(_board, headers={"HX-Request": "true"}),
    "ratings:report": UrlSample(_board),
    "ratings:board-prefer": UrlSample(_board, get=False, post=lambda side: {"ties": "rao_kupper"}),
    "ratings:jury-compare": UrlSample(_board),
    "ratings:board-list": UrlSample(_team),
    "ratings:board-open": UrlSample(_team),
    "ratings:board-detail": UrlSample(_by_id),
    "ratings:board-head-to-head": UrlSample(_by_id),
    "ratings:board-compare": UrlSample(_by_id),
    "ratings:board-cost": UrlSample(_by_id),
    "ratings:board-categories": UrlSample(_by_id),
    "ratings:board-over-time": UrlSample(_by_id),
    "ratings:session-screening": UrlSample(_session, get=False, post=lambda side: {"screening": "kept"}),
    "ratings:board-runs": UrlSample(_by_id),
    "ratings:board-csv": UrlSample(_table),
    "ratings:board-json": UrlSample(_table),
    "ratings:run-evidence": UrlSample(_run),
}
