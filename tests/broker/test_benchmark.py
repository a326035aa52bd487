"""The broker's benchmark measures something even where a server is quick, or late."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

import pytest

from benchmarks.broker import answers
from benchmarks.broker.process import cpu_seconds


def test_processor_time_is_seen_below_a_hundredth_of_a_second() -> None:
    before, until = cpu_seconds(os.getpid()), time.process_time() + 0.001
    while time.process_time() < until:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.001


def test_time_of_all_threads_counts_for_another_process_too() -> None:
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while cpu_seconds(child.pid) < 0.05:
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()
    with pytest.raises(ProcessLookupError, match=str(child.pid)):
        cpu_seconds(child.pid)


def test_a_server_that_answers_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PATIENCE", 0.01)
    read, write = os.pipe()
    with select.epoll() as poll:
        poll.register(read, select.EPOLLIN)
        with pytest.raises(TimeoutError, match="answered nothing"):
            answers.arrived(poll)
        os.write(write, b"answer")
        assert answers.arrived(poll) == [(read, select.EPOLLIN)]
    os.close(read)
    os.close(write)
