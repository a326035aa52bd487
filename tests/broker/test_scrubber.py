"""The broker scrubs its logs: what is damaged has a name and a count, soon after a start, and others aren't held up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kohort.broker.scrubber import SHARE, WORK_SECONDS, Pace
from kohort.broker.server import Server
from kohort.log.damage import DamageKind
from kohort.log.scrub import SegmentScrub
from tests.broker.conftest import Run
from tests.log.batches import batch
from tests.waiting import until


def damaged(server: Server, name: str) -> Path:
    """Flips a byte in the middle of a new topic's log; returns the log's file."""
    [partition] = server.broker.topics.create(name, 1, {}).partitions
    for _ in range(3):
        partition.log.append(batch(timestamp=server.now()), now=server.now())
    (file,) = partition.log.directory.glob("*.log")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return file


def test_a_flipped_byte_is_told_and_counted(with_server: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server) -> None:
        damaged(server, "orders")
        server.broker.topics.create("healthy", 1, {})
        await server.broker.scrubber.scrub()
        await server.broker.scrubber.scrub()
        assert +server.broker.metrics.damages == {DamageKind.DAMAGED_BATCH: 1}

    with_server(test)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "kohort.log"]
    assert line.startswith("orders-0: offset 1 is lost (1 record, ")
    assert "kohort log check" in line


def test_it_runs_soon_after_the_start(with_server: Run) -> None:
    async def test(server: Server) -> None:
        damaged(server, "orders")
        await until(lambda: server.broker.metrics.damages[DamageKind.DAMAGED_BATCH])

    with_server(test, "log.scrub.interval.ms=20")


def test_a_stop_ends_it(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    real = SegmentScrub.run

    def run(part: SegmentScrub, pause: Pace) -> bool:
        begun.set()
        while pause():  # as in a segment without an end
            pause._sleep(0.01)
        return real(part, pause)

    monkeypatch.setattr(SegmentScrub, "run", run)

    async def test(server: Server) -> None:
        damaged(server, "orders")
        await until(begun.is_set)

    with_server(test, "log.scrub.interval.ms=20")


def test_the_pace_leaves_the_machine_to_others() -> None:
    now, slept = 0.0, list[float]()
    pace = Pace(threading.Event(), lambda: now, slept.append)
    now = WORK_SECONDS / 2
    assert pace()
    assert slept == []
    now = WORK_SECONDS
    assert pace()
    assert slept == [pytest.approx(WORK_SECONDS / SHARE - WORK_SECONDS)]
