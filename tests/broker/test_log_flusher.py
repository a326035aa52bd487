"""Appends are safe at once, or after a sync."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kohort.broker.log_flusher import LogFlusher
from kohort.log import Log
from kohort.protocol.errors import KafkaError
from tests.log.batches import NOW, batch, open_log


def no_error(error: KafkaError) -> None:
    raise AssertionError(error)


def test_a_waiting_fetch_that_fails_keeps_no_producer_waiting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def advanced(log: Log) -> None:
        raise RuntimeError("a fetch that can't be answered")

    async def main() -> int:
        flusher = LogFlusher(True, advanced)
        log = open_log(tmp_path, durable=True)
        safe = []
        for _ in range(2):
            log.append(batch(), now=NOW)
            flusher.when_safe(log, lambda: safe.append(log.flushed_offset), no_error)
        await asyncio.wait_for(flusher.close(), 10)
        return len(safe)

    assert asyncio.run(main()) == 2
    assert "a fetch that can't be answered" in caplog.text


def test_what_is_appended_while_the_server_stops_is_safe_too(tmp_path: Path) -> None:
    async def main() -> list[int]:
        flusher = LogFlusher(True, lambda log: None)
        log = open_log(tmp_path, durable=True)
        safe: list[int] = []
        await flusher.close()
        log.append(batch(2), now=NOW)
        flusher.when_safe(log, lambda: safe.append(log.flushed_offset), no_error)
        await flusher.flush(log)
        await asyncio.wait_for(flusher.close(), 10)
        return safe

    assert asyncio.run(main()) == [2]
