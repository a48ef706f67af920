from __future__ import annotations

import re
import signal
import subprocess
import sys

import httpx
import pytest

from arena.llm.demo.__main__ import _parser, settings_from
from arena.llm.demo.catalogue import DEMO_CANDIDATES, DEMO_JUDGES, DEMO_MODELS, DEMO_QUALITY
from arena.llm.demo.settings import DEMO_FAULTS, Faults, Latency


def test_process_announces_itself_serves_and_stops() -> None:
    command = [sys.executable, "-m", "arena.llm.demo", "--port", "0", "--latency-ms", "0", "--no-faults"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/v1", line)
        assert found is not None
        assert "smoke test" in line
        response = httpx.get(f"{found[0]}/models", headers={"Authorization": "Bearer demo"}, trust_env=False)
        assert response.status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_options_become_settings() -> None:
    options = _parser().parse_args(["--latency-ms", "200", "--fixed", "--rate-limit-share", "0.33"])
    settings = settings_from(options)
    assert settings.latency == Latency.fixed(200)
    assert settings.faults.rate_limit_share == 0.33
    assert settings.faults.malformed_share == DEMO_FAULTS.malformed_share
    quiet = settings_from(_parser().parse_args(["--no-faults", "--silent", "page-mini"]))
    assert quiet.faults == Faults(silent=frozenset({"page-mini"}))
    assert (quiet.latency.low_ms, quiet.latency.high_ms) == (60, 180)


def test_a_share_above_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["--rate-limit-share", "2"])
    assert "between 0 and 1" in capsys.readouterr().err


def test_catalogue_holds_together() -> None:
    assert set(DEMO_QUALITY) == set(DEMO_CANDIDATES)
    assert set(DEMO_JUDGES) == {model.model_id for model in DEMO_MODELS if model.is_judge}
    assert set(DEMO_JUDGES) & set(DEMO_CANDIDATES) == {"lancer-large"}
    tempers = sorted(str(model.temper) for model in DEMO_MODELS if model.is_judge)
    assert tempers == ["careful", "careful", "first_seat", "length"]
    assert sum(model.schema_support == "json" for model in DEMO_MODELS if model.is_judge) == 1
