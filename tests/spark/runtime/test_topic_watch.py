"""What a running application does when topics come and go that a pattern matches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.client.config import ClientConfig
from kohort.spark.runtime import topic_watch
from kohort.spark.runtime.shutdown import Shutdown
from kohort.spark.runtime.topic_watch import run_with_topics

TOPICS: list[str] = []


class Stopping(Shutdown):
    """Ends what runs by an event."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def end(self) -> None:
        self.over.set()


class NoAdmin(contextlib.AbstractAsyncContextManager[Any]):
    """Lists the topics that there are now."""

    def __init__(self, client: object) -> None:
        self.topics = self

    async def __aexit__(self, *_: object) -> None: ...

    async def list(self) -> dict[str, None]:
        return dict.fromkeys(TOPICS)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], None], Stopping], None]:
    monkeypatch.setattr(topic_watch, "_LOOK_S", 0.01)
    monkeypatch.setattr(topic_watch, "Admin", NoAdmin)
    monkeypatch.setattr(
        topic_watch, "matched_topics", lambda _, names: {"o.*": tuple(name for name in names if name[0] == "o")}
    )
    monkeypatch.setattr(topic_watch, "with_topics", lambda _, found: found["o.*"])
    program: Any = SimpleNamespace(application_id="app", topology=SimpleNamespace(source_patterns={"o.*"}))
    client = ClientConfig(bootstrap_servers="127.0.0.1:1")
    return lambda once, stopping: run_with_topics(program, client, once, stopping)


def test_it_runs_again_with_what_is_there(
    run: Callable[[Callable[[Any], None], Stopping], None], caplog: pytest.LogCaptureFixture
) -> None:
    TOPICS[:] = ["o1", "x"]
    stopping, seen = Stopping(), []

    def once(topics: tuple[str, ...]) -> None:
        seen.append(topics)
        stopping.over.clear()
        if len(seen) == 3:
            return
        TOPICS[:] = ["o1", "o2"] if len(seen) == 1 else ["o2"]
        assert stopping.over.wait(10)

    run(once, stopping)
    assert seen == [("o1",), ("o1", "o2"), ("o2",)]
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "the pattern 'o.*' matches o2, too: the instance starts again, with its state",
        "o1 of the pattern 'o.*' is gone: the instance starts again, with its state",
    ]


def test_it_does_not_run_again_when_it_is_to_stop(run: Callable[[Callable[[Any], None], Stopping], None]) -> None:
    TOPICS[:] = ["o1"]
    stopping, seen = Stopping(), []

    def once(topics: tuple[str, ...]) -> None:
        seen.append(topics)
        TOPICS[:] = ["o1", "o2"]
        assert stopping.over.wait(10)
        stopping.ask()

    run(once, stopping)
    assert seen == [("o1",)]
