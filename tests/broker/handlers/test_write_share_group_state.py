"""WriteShareGroupState: the life of a state through a server, in every version."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask, asker
from tests.broker.handlers.share_state import codes, delete, initialize, read, summary, write


@pytest.mark.parametrize("version", [0, 1])
def test_the_life_of_a_state(version: int, ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 2).id

    assert codes(ask(initialize(topic_id, 0, 1))) == [(0, 0), (1, 0)]
    assert codes(ask(write(topic_id, 0), version)) == [(0, 0)]

    (result,) = ask(read(topic_id, 0, 1)).results
    assert result.topic_id == topic_id
    first, second = result.partitions
    assert (first.state_epoch, first.start_offset, first.error_message) == (1, 3, None)
    (batch,) = first.state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count) == (3, 5, 2, 1)
    assert (second.start_offset, second.state_batches) == (-1, [])

    (part,) = ask(summary(topic_id, 0), version).results[0].partitions
    counted = 3 if version else -1
    assert (part.state_epoch, part.leader_epoch, part.start_offset) == (1, 0, 3)
    assert part.delivery_complete_count == counted

    assert codes(ask(delete(topic_id, 0))) == [(0, 0)]
    assert codes(ask(read(topic_id, 0))) == [(0, ErrorCode.INVALID_REQUEST)]


def test_a_restart_brings_the_states_back_and_what_is_redundant_is_deleted(tmp_path: Path) -> None:
    settings = Settings.of({"node.id": 1, "share.coordinator.snapshot.update.records.per.snapshot": 2})

    async def first_run() -> UUID:
        broker = Broker.build(settings, data_dir=tmp_path)
        await broker.start()
        ask = asker(broker)
        topic_id = broker.topics.create("there", 1).id
        ask(initialize(topic_id, 0))
        for start_offset in range(8):
            ask(write(topic_id, 0, start_offset=start_offset))
        await broker.share_state.prune()
        (entry,) = (entry for entry in broker.share_state._entries if len(entry.shard))
        assert (entry.partition.log.log_start_offset, entry.partition.log.log_end_offset) == (6, 9)
        await broker.stop()
        return topic_id

    async def second_run(topic_id: UUID) -> None:
        broker = Broker.build(settings, data_dir=tmp_path)
        await broker.start()
        while broker.share_state.loading():
            await asyncio.sleep(0)
        (part,) = asker(broker)(read(topic_id, 0)).results[0].partitions
        assert (part.error_code, part.start_offset, part.state_batches) == (ErrorCode.NONE, 7, [])
        await broker.stop()

    asyncio.run(second_run(asyncio.run(first_run())))
