"""librdkafka, through confluent-kafka: where a consumer begins, what it finds by time, what it commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from ..waiting import eventually
from .clients import LIBRARIES, Message
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]
UNSET = -1001
EPOCH = int(time.time() * 1000) - 3_600_000


@contextmanager
def consumer(server: Server, group: str, **settings: Any) -> Iterator[Consumer]:
    common = {"bootstrap.servers": server.bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer(common | {"fetch.wait.max.ms": 10, "heartbeat.interval.ms": 300} | settings)
    yield consumer
    consumer.close()


@pytest.fixture
def topic(server: Server, new_topic: NewTopic) -> str:
    """Ten records, "0" to "9", at 1000, 2000, … 10000 ms after an hour ago."""
    topic = new_topic()
    LIBRARIES[0].produce(
        server.bootstrap, topic, [Message(b"%d" % i, timestamp=EPOCH + 1000 * (i + 1)) for i in range(10)]
    )
    return topic


def first(consumer: Consumer) -> bytes:
    message = consumer.poll(20)
    assert message is not None and not message.error(), message and message.error()
    value = message.value()
    assert value is not None
    return value


def end(consumer: Consumer) -> int:
    """The offset at which there is nothing more."""
    message = consumer.poll(20)
    assert message is not None and message.error().code() == KafkaError._PARTITION_EOF
    return message.offset()


def test_earliest_begins_at_the_first_record(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name(), **{"auto.offset.reset": "earliest"}) as member:
        member.subscribe([topic])
        assert first(member) == b"0"


def test_latest_begins_after_the_last_record(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name(), **{"auto.offset.reset": "latest", "enable.partition.eof": True}) as member:
        member.subscribe([topic])
        assert end(member) == 10
        LIBRARIES[0].produce(server.bootstrap, topic, [Message(b"new")])
        assert first(member) == b"new"


def test_none_is_an_error(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name(), **{"auto.offset.reset": "error"}) as member:
        member.subscribe([topic])
        message = member.poll(20)
        assert message is not None and message.error().code() == KafkaError._AUTO_OFFSET_RESET


def test_an_offset_out_of_range_is_reset_to_the_first_record(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name(), **{"auto.offset.reset": "earliest"}) as reader:
        reader.assign([TopicPartition(topic, 0, 5000)])
        assert first(reader) == b"0"


def test_an_offset_out_of_range_is_reset_to_the_end(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name(), **{"auto.offset.reset": "latest", "enable.partition.eof": True}) as reader:
        reader.assign([TopicPartition(topic, 0, 5000)])
        assert end(reader) == 10


def test_seek(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name()) as reader:
        reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert first(reader) == b"0"
        for offset in (7, 3, 9):
            reader.seek(TopicPartition(topic, 0, offset))
            assert first(reader) == b"%d" % offset


@pytest.mark.parametrize(
    ("after", "offset"),
    [(0, 0), (1000, 0), (1001, 1), (5500, 5), (10_000, 9), (10_001, -1)],
)
def test_offsets_for_times(after: int, offset: int, server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name()) as reader:
        found = reader.offsets_for_times([TopicPartition(topic, 0, EPOCH + after)], timeout=20)
    assert found[0].error is None
    assert found[0].offset == offset


def test_committed_offsets_come_back_with_their_metadata(server: Server, topic: str, new_name: NewName) -> None:
    group = new_name()
    with consumer(server, group) as reader:
        assert reader.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == UNSET
        reader.commit(offsets=[TopicPartition(topic, 0, 4, "half-way, ünï")], asynchronous=False)
    with consumer(server, group) as reader:
        found = reader.committed([TopicPartition(topic, 0)], timeout=20)[0]
        assert (found.offset, found.metadata) == (4, "half-way, ünï")


def test_a_member_begins_where_the_group_has_committed(server: Server, topic: str, new_name: NewName) -> None:
    group = new_name()
    with consumer(server, group) as reader:
        reader.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    with consumer(server, group) as member:
        member.subscribe([topic])
        assert first(member) == b"4"


def test_what_is_read_is_committed_on_close(server: Server, topic: str, new_name: NewName) -> None:
    group = new_name()
    with consumer(server, group, **{"enable.auto.commit": True, "auto.offset.reset": "earliest"}) as member:
        member.subscribe([topic])
        assert [first(member) for _ in range(6)] == [b"%d" % i for i in range(6)]
    with consumer(server, group) as reader:
        assert reader.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 6


def test_lag_is_the_end_less_the_committed(server: Server, topic: str, new_name: NewName) -> None:
    with consumer(server, new_name()) as reader:
        reader.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=20) == (0, 10)
        reader.assign([TopicPartition(topic, 0)])
        assert first(reader) == b"4"
        assert reader.get_watermark_offsets(TopicPartition(topic, 0), cached=True)[1] == 10


def test_a_regex_finds_topics_made_later(server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    group = new_name()
    settings = {"auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 100}
    with consumer(server, group, **settings) as member:
        member.subscribe([f"^{group.removesuffix('-1')}.*"])
        member.poll(0.1)
        topic = new_topic()
        LIBRARIES[0].produce(server.bootstrap, topic, [Message(b"v")])
        assert first(member) == b"v"


def test_acks_0_and_1_are_written_too(server: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    for acks in (0, 1):
        producer = Producer({"bootstrap.servers": server.bootstrap, "acks": acks})
        producer.produce(topic, b"%d" % acks)
        assert producer.flush(20) == 0
    eventually(
        lambda: {m.value for m in LIBRARIES[0].consume(server.bootstrap, topic)} == {b"0", b"1"}, what="both are there"
    )


def test_a_topic_is_made_by_writing_to_it(server: Server, new_name: NewName) -> None:
    topic = new_name()
    LIBRARIES[0].produce(server.bootstrap, topic, [Message(b"v")])
    assert [m.value for m in LIBRARIES[0].consume(server.bootstrap, topic)] == [b"v"]
