from __future__ import annotations

from collections.abc import Iterator

import pytest

from kohort import extras
from kohort.cli import terminal
from kohort.testing import Broker

from .client_topics import Topics


@pytest.fixture(autouse=True)
def wide_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe, whatever the width of the terminal that the tests are run in."""
    monkeypatch.setattr(terminal.out, "width", 160)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    with Broker() as broker:
        yield Topics(broker.bootstrap_servers)


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create_one()


@pytest.fixture(params=["columns", "rows"])
def record_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How records go between client and files, in this process: with the extra `arrow`, or as without it."""
    if request.param == "rows":
        monkeypatch.setattr(extras, "find_spec", lambda package: None)
    return str(request.param)
