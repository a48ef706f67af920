"""continue_tournament and rejudge in this process, with the embedded worker and the demo endpoint."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from arena.llm.demo.server import serve_in_thread
from arena.llm.demo.settings import DemoSettings
from arena.models import Decision, Jury, Tournament
from ratings.headless.endings import Exit
from tests.ratings.headless.runs import lines_of, run, write_config

pytestmark = pytest.mark.django_db(transaction=True)
PANEL = """\
name: Second panel
judges:
  - {provider: demo, model_id: usher-2, max_tokens: 1024, price: {input: 1, output: 4}}
jury: {quorum: 1}
"""


def command(name: str, *arguments: object) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command(name, *(str(one) for one in arguments), stdout=out, stderr=err)
    except SystemExit as left:
        return int(str(left.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.fixture
def _data_folder(settings: object, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("_data_folder")
def test_a_run_goes_on_and_is_judged_again(tmp_path: Path) -> None:
    server = serve_in_thread(settings=DemoSettings.quiet(2))
    try:
        (tmp_path / "samples.jsonl").write_text(
            "".join(json.dumps({"prompt": f"Explain clause {number}."}) + "\n" for number in range(6))
        )
        config = write_config(tmp_path, server.base_url)
        first = run(config, "--yes", "--json", out=tmp_path)
        assert first.code == Exit.FINISHED
        tournament = Tournament.objects.get(public_id=first.json["tournament_id"])
        code, out, _ = command("continue_tournament", tournament.public_id, "--matches", 12, "--out", tmp_path)
        assert (code, "3 matches of" in out, tournament.matches.count()) == (Exit.NOT_STARTED, True, 9)
        code, _, err = command("continue_tournament", tournament.public_id, "--matches", 12, "--yes", "--out", tmp_path)
        assert (code, err) == (Exit.FINISHED, "")
        assert len(lines_of(Path(first.json["files"]["matches"]))) == 12
        code, _, err = command("continue_tournament", tournament.public_id, "--retry", "--out", tmp_path)
        assert (code, "Nothing of it failed" in err) == (Exit.NOT_STARTED, True)
        panel = tmp_path / "panel.yaml"
        panel.write_text(PANEL)
        code, out, err = command("rejudge", tournament.public_id, panel, "--yes", "--out", tmp_path)
        assert (code, err) == (Exit.FINISHED, "")
        jury = Jury.objects.get(tournament=tournament, primary=False)
        assert Decision.objects.current().filter(jury=jury).count() == 12
        [board] = tmp_path.glob(f"*-{jury.public_id}.board.json")
        assert json.loads(board.read_text())["jury"] == "Second panel"
        panel.write_text(PANEL + "max_matches: 3\n")
        code, _, err = command("rejudge", tournament.public_id, panel, "--yes")
        assert (code, "max_matches" in err) == (Exit.NOT_STARTED, True)
    finally:
        server.stop()
