"""What is said before an instance has begun."""

from __future__ import annotations

import logging

import pytest

from kohort.spark.monitoring.events import Listener
from kohort.spark.monitoring.start_lines import StartLines


class _Failing(Listener):
    def waiting(self, reason: str | None) -> None:
        raise ValueError(reason)


class _Hearing(Listener):
    heard: str | None = None
    begun: str | None = None

    def starting(self, step: str) -> None:
        self.begun = step

    def waiting(self, reason: str | None) -> None:
        self.heard = reason


def test_a_listener_that_fails_keeps_nothing_from_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    hearing = _Hearing()
    lines = StartLines("app", shown=False, listeners=[_Failing(), hearing])
    lines.doing("starting Spark")
    lines.waiting("no broker")
    assert (hearing.begun, hearing.heard) == ("starting Spark", "no broker")
    assert "app waits: no broker" in caplog.messages
