from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from kohort.cli import terminal
from kohort.cli.client.profiles import named_by_option
from kohort.cli.data import choose_path
from kohort.extras import ARROW
from kohort.testing import Broker

from .client_topics import Topics


@pytest.fixture(autouse=True)
def wide_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe, whatever the width of the terminal that the tests are run in."""
    monkeypatch.setattr(terminal.out, "width", 160)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def no_profiles(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have clusters of their own, and the test before may have named one."""
    named_by_option.set(None)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-profiles"))
    for variable in ("KOHORT_CLUSTER", "KOHORT_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    with Broker() as broker:
        yield Topics(broker.bootstrap_servers)


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create_one()


@pytest.fixture(params=["columns", "rows"])
def kohort_command(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How to start `kohort` in a process, with and without the extra `arrow`; in this one it's the same meanwhile."""
    if request.param == "columns":
        return [sys.executable, "-m", "kohort.cli"]

    monkeypatch.setattr(choose_path, "are_installed", lambda packages: packages is not ARROW)
    blocking = f"import sys; sys.modules.update(dict.fromkeys({ARROW})); from kohort.cli import main; main()"
    return [sys.executable, "-c", blocking]
