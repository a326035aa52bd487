"""Where the last records begin, if a partition's end can't be reached."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from kohort.cli.data import last_records
from kohort.client.types import TopicPartition


def test_offsets_are_counted_where_a_log_was_cut_after_its_end_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_records, "_PATIENCE_S", 0.01)
    tp = TopicPartition("t", 0)
    consumer: Any = MagicMock(end_offsets=AsyncMock(return_value={tp: 10}))
    consumer.beginning_offsets = AsyncMock(return_value={tp: 0})
    consumer.position.return_value = 8
    path: Any = MagicMock(poll=AsyncMock(return_value=None))
    found = asyncio.run(asyncio.wait_for(last_records.last_records(consumer, path, [tp], 3), 10))
    assert found == {tp: 7}
    consumer.resume.assert_called_with(tp)
