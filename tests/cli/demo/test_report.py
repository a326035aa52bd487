from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.cli.demo.report import print_next_steps


def test_the_instance_that_one_may_add_answers_queries_too(capsys: pytest.CaptureFixture[str]) -> None:
    outcome: Any = SimpleNamespace(
        instances=[None, SimpleNamespace(endpoint=("127.0.0.1", 8081))],
        plan=SimpleNamespace(run=Path("run")),
        servers="127.0.0.1:9092",
        console="http://127.0.0.1:8090/group?id=flight-delays",
        stream={"delays-by-hour": {("2013-12-31T23:00:00.000Z", "JFK"): {}}},
    )
    print_next_steps(outcome)
    said = capsys.readouterr().out
    assert "xdg-open 'http://127.0.0.1:8090/group?id=flight-delays'" in said
    assert "--state-dir run/instance-3 --endpoint 127.0.0.1:0" in said
    assert "curl http://127.0.0.1:8081/stores/delays/JFK@2013-12-31T23:00:00Z" in said
