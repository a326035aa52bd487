"""What a broker logs is kept for reports, and others hear no more and no less than before."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kohort.testing import broker_log
from kohort.testing.broker_log import BrokerLog

SERVER = logging.getLogger("kohort.tried.server")


@pytest.fixture(autouse=True)
def loggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers of these tests' own: those of brokers the plugin may hold, where an earlier test had a broker."""
    monkeypatch.setattr(broker_log, "_LOGGERS", ("kohort.tried", "kohort.tried_too"))


@pytest.fixture
def kept() -> Iterator[BrokerLog]:
    kept = BrokerLog()
    kept.install()
    yield kept
    kept.uninstall()


def test_it_keeps_what_nobody_else_hears(kept: BrokerLog, caplog: pytest.LogCaptureFixture) -> None:
    SERVER.info("started port=%d", 9092)
    SERVER.debug("a detail")
    SERVER.warning("something is wrong")
    assert "event=started port=9092" in kept.since(0)
    assert "a detail" not in kept.since(0)
    assert caplog.messages == ["something is wrong"]


@pytest.mark.parametrize("name", ["kohort.tried.server", "kohort.tried", "kohort", ""])
@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.ERROR])
def test_levels_that_a_test_sets_count_for_it(caplog: pytest.LogCaptureFixture, name: str, level: int) -> None:
    def heard() -> list[int]:
        with caplog.at_level(level, logger=name or None):
            caplog.clear()
            for each in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
                SERVER.log(each, "a line")
            return [record.levelno for record in caplog.records]

    without = heard()
    kept = BrokerLog()
    kept.install()
    try:
        assert heard() == without
    finally:
        kept.uninstall()


def test_it_gives_what_came_since(kept: BrokerLog) -> None:
    SERVER.info("before")
    position = kept.position
    assert kept.since(position) == ""
    SERVER.info("after")
    assert "event=after" in kept.since(position)
    assert "event=before" not in kept.since(position)


def test_of_very_much_it_keeps_the_latest(kept: BrokerLog) -> None:
    for number in range(300):
        SERVER.info("line number=%d", number)
    lines = kept.since(50).splitlines()
    assert lines[0] == "(50 lines before these)"
    assert len(lines) == 201
    assert lines[-1].endswith("number=299")


def test_a_level_that_was_set_before_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="kohort.tried")
    kept = BrokerLog()
    kept.install()
    try:
        SERVER.error("an error")
        assert "an error" in kept.since(0)
        assert caplog.messages == ["an error"]
    finally:
        kept.uninstall()
    assert logging.getLogger("kohort.tried").level == logging.ERROR


def test_a_level_that_is_set_no_more_leaves_no_gap() -> None:
    logger = logging.getLogger("kohort.tried")
    kept = BrokerLog()
    logger.setLevel(logging.ERROR)
    try:
        kept.install()
        logger.setLevel(logging.NOTSET)
        kept.install()
        SERVER.info("started")
        assert "event=started" in kept.since(0)
    finally:
        kept.uninstall()
        logger.setLevel(logging.NOTSET)


def test_it_leaves_nothing() -> None:
    def state() -> list[object]:
        names = ("kohort.tried", "kohort.tried_too")
        return [(each.level, each.propagate, [*each.handlers]) for each in map(logging.getLogger, names)]

    before = state()
    kept = BrokerLog()
    kept.install()
    kept.install()
    assert state() != before
    kept.uninstall()
    assert state() == before
