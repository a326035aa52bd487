from __future__ import annotations

from random import Random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.partitioners import TopicRoutes, murmur2
from kohort.client.types import TopicPartition
from kohort.protocol.records.partitioner import murmur2 as compiled


def routes(partitioner: object = "murmur2", partitions: int = 3, stickiness: int = 100) -> TopicRoutes:
    queues = [PartitionQueue(TopicPartition("t", n), idempotent=True, most_in_flight=5) for n in range(partitions)]
    for queue in queues:
        queue.node = 1
    return TopicRoutes("t", queues, partitioner, stickiness, Random(1))  # type: ignore[arg-type]


@given(st.binary(max_size=300))
def test_the_hash_is_that_of_the_compiled_one(key: bytes) -> None:
    assert murmur2(key) == compiled(key) & 0x7FFFFFFF


def test_keys_go_where_kafka_sends_them() -> None:
    table = routes(partitions=7)
    for key in (b"", b"a", b"key-17"):
        assert table.route(key, 10) is table.queues[murmur2(key) % 7]
    assert routes("consistent_random", 7).route(b"a", 1).target.partition == crc32(b"a") % 7


def test_keyless_records_stick_for_a_batch_and_then_go_elsewhere() -> None:
    table = routes()
    seen = [table.route(None, 50).target.partition for _ in range(8)]
    assert [seen[0], seen[2], seen[4], seen[6]] == [seen[1], seen[3], seen[5], seen[7]]
    assert all(seen[place] != seen[place + 2] for place in (0, 2, 4))


def test_partitions_without_a_leader_are_left_out_while_there_are_others() -> None:
    table = routes()
    table.queues[0].node = table.queues[1].node = None
    table.refresh()
    assert {table.route(None, 200).target.partition for _ in range(10)} == {2}
    table.queues[2].node = None
    table.refresh()
    assert len({table.route(None, 200).target.partition for _ in range(20)}) == 3


def test_the_users_partitioner_decides() -> None:
    table = routes(lambda topic, key, count: count - 1)
    assert table.route(b"k", 1).target.partition == 2
    with pytest.raises(IndexError):
        routes(lambda topic, key, count: count).route(None, 1)
