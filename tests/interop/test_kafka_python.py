"""kafka-python: where a consumer begins, what it finds by time, what it commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import NoOffsetForPartitionError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from ..waiting import eventually
from .clients import LIBRARIES, Message
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]


@contextmanager
def consumer(server: Server, group: str | None = None, **settings: Any) -> Iterator[KafkaConsumer]:
    common = {"bootstrap_servers": server.bootstrap, "enable_auto_commit": False, "fetch_max_wait_ms": 10}
    with closing(KafkaConsumer(**common | {"group_id": group, "heartbeat_interval_ms": 300} | settings)) as consumer:
        yield consumer


@pytest.fixture
def topic(server: Server, new_topic: NewTopic) -> str:
    """Ten records, "0" to "9", at 1000, 2000, … 10000 ms."""
    topic = new_topic()
    messages = [Message(b"%d" % i, timestamp=1000 * (i + 1)) for i in range(10)]
    LIBRARIES[1].produce(server.bootstrap, topic, messages)
    return topic


def first(consumer: KafkaConsumer) -> bytes:
    for _ in range(20):
        # Long polls: it loses a join that spans two calls (docs/compatibility.md).
        for records in consumer.poll(timeout_ms=1_000, max_records=1).values():
            return records[0].value
    raise AssertionError("nothing to read")


def positioned(consumer: KafkaConsumer, topic: str) -> int:
    """Its position in partition 0, once that is its own."""
    for _ in range(20):
        consumer.poll(timeout_ms=1_000)  # as long as in `first`: it joins again when it hears of the topic
        if consumer.assignment():
            return consumer.position(TopicPartition(topic, 0))
    raise AssertionError("no partition")


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 0), ("latest", 10)])
def test_a_group_without_offsets_begins_where_its_policy_says(
    policy: str, offset: int, server: Server, topic: str, new_name: NewName
) -> None:
    with consumer(server, new_name(), auto_offset_reset=policy, max_poll_records=1) as member:
        member.subscribe([topic])
        if policy == "earliest":
            assert first(member) == b"0"
        else:
            assert positioned(member, topic) == offset


def test_none_is_an_error(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name(), auto_offset_reset="none") as member:
        member.assign([TopicPartition(topic, 0)])
        with pytest.raises(NoOffsetForPartitionError):
            first(member)


def test_an_offset_out_of_range_is_reset(server: Server, topic: str) -> None:
    with consumer(server, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        reader.seek(TopicPartition(topic, 0), 5000)
        assert first(reader) == b"0"


def test_seek(server: Server, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    with consumer(server) as reader:
        reader.assign([partition])
        for offset in (7, 3, 9):
            reader.seek(partition, offset)
            assert first(reader) == b"%d" % offset
        reader.seek_to_beginning(partition)
        assert first(reader) == b"0"
        reader.seek_to_end(partition)
        assert reader.position(partition) == 10


@pytest.mark.parametrize(("after", "offset"), [(0, 0), (1000, 0), (1001, 1), (10_000, 9), (10_001, None)])
def test_offsets_for_times(after: int, offset: int | None, server: Server, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    with consumer(server) as reader:
        found = reader.offsets_for_times({partition: after})[partition]
    assert (found and found.offset) == offset
    assert offset is None or found.timestamp == 1000 * (offset + 1)


def test_committed_offsets_and_lag(server: Server, topic: str, new_name: NewName) -> None:
    group, partition = new_name(), TopicPartition(topic, 0)
    with consumer(server, group) as reader:
        reader.assign([partition])
        assert reader.committed(partition) is None
        reader.commit({partition: OffsetAndMetadata(4, "half-way, ünï", -1)})
    with consumer(server, group) as reader:
        found = reader.committed(partition, metadata=True)
        assert (found.offset, found.metadata) == (4, "half-way, ünï")
        assert reader.beginning_offsets([partition]) == {partition: 0}
        assert reader.end_offsets([partition])[partition] - found.offset == 6
        reader.subscribe([topic])
        assert first(reader) == b"4"
        assert reader.highwater(partition) == 10


def test_what_is_read_is_committed_on_close(server: Server, topic: str, new_name: NewName) -> None:
    group = new_name()
    with consumer(server, group, enable_auto_commit=True, auto_offset_reset="earliest") as member:
        member.subscribe([topic])
        assert [first(member) for _ in range(6)] == [b"%d" % i for i in range(6)]
    with consumer(server, group) as reader:
        assert reader.committed(TopicPartition(topic, 0)) == 6


def test_many_in_few_requests(server: Server, new_topic: NewTopic) -> None:
    topic, messages = new_topic(), [Message(b"%d" % i) for i in range(20_000)]
    LIBRARIES[1].produce(server.bootstrap, topic, messages, linger_ms=5, batch_size=100_000)
    found = LIBRARIES[1].consume(server.bootstrap, topic)
    assert [m.value for m in found] == [m.value for m in messages]


def test_a_transaction_left_open_is_aborted_in_time(server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic()
    with closing(
        KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=new_name(), transaction_timeout_ms=5000)
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"left").get(20)
        LIBRARIES[1].produce(server.bootstrap, topic, [Message(b"plain")])

        def committed() -> list[bytes | None]:
            return [m.value for m in LIBRARIES[1].consume(server.bootstrap, topic, committed=True)]

        assert committed() == []
        eventually(lambda: committed() == [b"plain"], what="the transaction is aborted")
        with pytest.raises(ProducerFencedError):
            producer.commit_transaction()
