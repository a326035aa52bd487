"""The restore's benchmark hears of a contender that ends."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.restore.contenders import Contender, Job
from benchmarks.restore.process import Process

LIMIT = 30


class Says(Contender):
    """Prints a phase, complains, and ends."""

    name, title = "kohort", "Kohort"

    def command(self, job: Job) -> list[str]:
        return [sys.executable, "-c", "import sys; print('phase 1.0 2.0 opening'); sys.exit('no more')"]


def test_a_contender_that_ends_is_noticed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by who looks again before the thread that heard of it has ended."""
    over = threading.Event()

    class Slow(threading.Thread):
        def run(self) -> None:
            super().run()
            over.wait(LIMIT)

    monkeypatch.setattr("benchmarks.restore.process.threading.Thread", Slow)
    monkeypatch.setattr("benchmarks.restore.process.PATIENCE", 5)
    job = Job("none", "app", 1, 1, str(tmp_path))
    with Process(Says(), job) as process, contextlib.ExitStack() as before_it_is_joined:
        before_it_is_joined.callback(over.set)
        assert process.reached("opening") == (1.0, 2.0)
        with pytest.raises(RuntimeError, match="Kohort ended before it was restored:\nno more"):
            process.reached("restored")
