"""Dead letters: what is in them, where they may go, and what a crash leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.broker.broker import Broker
from kohort.broker.share import dead_letters
from kohort.broker.topics import ConfigResource, Topic
from kohort.coordinator.share_partition import RecordState
from kohort.protocol.records.batch import Compression, scan_batches
from kohort.protocol.records.rows import decode_rows, encode_rows, read_records
from tests.broker.handlers.conftest import NOW, Ask, append
from tests.broker.share.groups import GROUP, Member, acquired, errors, initialized

AUTO = {"errors.deadletterqueue.auto.create.topics.enable": True}
Letter = tuple[bytes | None, bytes | None, dict[str, bytes | None]]


def shared(
    broker: Broker, *, partitions: int = 1, compression: Compression = Compression.NONE, **configs: str
) -> Topic:
    """A topic with batches of two records, that a group with dead letters shares."""
    broker.topics.set_configs(
        ConfigResource.GROUP,
        GROUP,
        {"errors.deadletterqueue.topic.name": "dlq.t", **{name.replace("_", "."): configs[name] for name in configs}},
    )
    topic = broker.topics.create("t", partitions)
    for number in range(0, 6, 2):
        keys, values = [b"k%d" % number, None], [b"v%d" % number, b"v%d" % (number + 1)]
        headers: list[Any] = [[("h", b"1")], []]
        batch = encode_rows([NOW, NOW], keys, values, headers, compression=compression, leader_epoch=0)
        append(broker, "t", partitions - 1, batch)
    broker.share_state.start()
    initialized(broker, topic)
    return topic


def letters(broker: Broker, name: str = "dlq.t", index: int = 0) -> list[Letter]:
    partition = broker.topics.partition(name, index)
    assert partition is not None
    data = partition.log.read(0, 1 << 20, up_to=partition.log.log_end_offset)
    found: list[Letter] = []
    for header in scan_batches(data):
        rows = decode_rows(data, header)
        found += zip(rows.keys, rows.values, map(dict, rows.headers), strict=True)
    return found


def headers_of(offset: int, message: str, delivery_count: int = 1, partition: int = 0) -> dict[str, bytes]:
    return {
        "__dlq.errors.topic": b"t",
        "__dlq.errors.partition": b"%d" % partition,
        "__dlq.errors.offset": b"%d" % offset,
        "__dlq.errors.group": GROUP.encode(),
        "__dlq.errors.delivery.count": b"%d" % delivery_count,
        "__dlq.errors.message": message.encode(),
    }


REJECTED = "Offset rejected by client."
EXHAUSTED = "Offset delivery count exceeded the threshold."


@pytest.mark.parametrize("settings", [AUTO])
def test_what_is_rejected_has_a_letter_with_the_reason(broker: Broker, ask: Ask) -> None:
    member = Member(ask, shared(broker))
    assert acquired(member.fetch()) == [(0, 5, 1)]
    assert errors(member.acknowledge((0, 1, 1), (2, 3, 3), (4, 5, (1, 3)))) == [(0, 0)]
    assert letters(broker) == [(None, None, headers_of(offset, REJECTED)) for offset in (2, 3, 5)]
    topic = broker.topics.get("dlq.t")
    assert topic is not None
    assert topic.configs == {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
    (hosted,) = broker.shares
    assert hosted.machine is not None
    assert (hosted.machine.start_offset, hosted.machine.describe()) == (6, [])
    assert (broker.shares.dead_letters.written, broker.shares.dead_letters.failed) == (3, 0)


@pytest.mark.parametrize("settings", [AUTO])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_records_are_copied_where_the_group_says_so(broker: Broker, ask: Ask, compression: Compression) -> None:
    topic = shared(broker, compression=compression, errors_deadletterqueue_copy_record_enable="true")
    member = Member(ask, topic)
    member.fetch()
    member.acknowledge((0, 0, 1), (1, 4, 3), (5, 5, 1))
    assert [letter[:2] for letter in letters(broker)] == [
        (None, b"v1"), (b"k2", b"v2"), (None, b"v3"), (b"k4", b"v4"),
    ]  # fmt: skip
    assert [letter[2]["__dlq.errors.offset"] for letter in letters(broker)] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("settings", [AUTO])
def test_what_was_delivered_too_often_has_one_too(broker: Broker, ask: Ask) -> None:
    member = Member(ask, shared(broker, share_delivery_count_limit="2"))
    for _ in range(2):
        while acquired(response := member.fetch()):
            first, last, _count = acquired(response)[0]
            assert errors(member.acknowledge((first, last, 2))) == [(0, 0)]
    assert letters(broker) == [(None, None, headers_of(offset, EXHAUSTED, 2)) for offset in range(6)]


@pytest.mark.parametrize("settings", [{**AUTO, "num.partitions": 2}])
def test_letters_go_to_the_partition_of_the_same_number(broker: Broker, ask: Ask) -> None:
    member = Member(ask, shared(broker, partitions=4))
    assert acquired(member.fetch(indexes=[3]), 3) == [(0, 5, 1)]
    member.acknowledge((0, 0, 3), index=3)
    assert letters(broker, index=0) == []
    assert letters(broker, index=1) == [(None, None, headers_of(0, REJECTED, partition=3))]


@pytest.mark.parametrize(
    ("settings", "name", "topic_configs"),
    [
        ({}, "dlq.t", None),  # it isn't there, and isn't created
        (AUTO, "other", None),  # another prefix
        ({}, "dlq.t", {}),  # not open to dead letters
        (AUTO, "dlq.t", {"errors.deadletterqueue.group.enable": "false"}),
        (AUTO, "dlq.*", None),  # no name of a topic
    ],
)
def test_where_no_letter_can_be_written_the_record_is_given_up_all_the_same(
    broker: Broker, ask: Ask, name: str, topic_configs: dict[str, str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    topic = shared(broker, errors_deadletterqueue_topic_name=name)
    if topic_configs is not None:
        broker.topics.create(name, 1, topic_configs)
    member = Member(ask, topic)
    member.fetch()
    assert errors(member.acknowledge((0, 5, 3))) == [(0, 0)]
    (hosted,) = broker.shares
    assert hosted.machine is not None
    assert hosted.machine.start_offset == 6
    assert (broker.shares.dead_letters.written, broker.shares.dead_letters.failed) == (0, 6)
    assert "have no dead letter" in caplog.text


@pytest.mark.parametrize("settings", [{"errors.deadletterqueue.topic.name.prefix": ""}])
def test_the_topic_decides_how_large_batches_are(broker: Broker, ask: Ask) -> None:
    topic = shared(broker, errors_deadletterqueue_topic_name="rejects")
    broker.topics.create("rejects", 1, {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "600"})
    member = Member(ask, topic)
    member.fetch()
    member.acknowledge((0, 5, 3))
    assert [letter[2]["__dlq.errors.offset"] for letter in letters(broker, "rejects")] == [
        b"%d" % offset for offset in range(6)
    ]


@pytest.mark.parametrize("settings", [{"errors.deadletterqueue.topic.name.prefix": ""}])
def test_a_copy_that_is_too_large_for_the_topic_is_left_out(broker: Broker, ask: Ask) -> None:
    topic = shared(
        broker, errors_deadletterqueue_topic_name="rejects", errors_deadletterqueue_copy_record_enable="true"
    )
    broker.topics.create("rejects", 1, {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "600"})
    append(broker, "t", 0, encode_rows([NOW, NOW], [None, None], [b"x" * 500, b"y"], [[], []], leader_epoch=0))
    member = Member(ask, topic)
    member.fetch()
    member.acknowledge((0, 4, 1), (5, 7, 3))
    assert [letter[1] for letter in letters(broker, "rejects")] == [b"v5", None, b"y"]
    assert (broker.shares.dead_letters.written, broker.shares.dead_letters.failed) == (3, 0)


@pytest.mark.parametrize("settings", [AUTO])
def test_a_crash_before_the_letter_loses_it_not(broker: Broker, ask: Ask, tmp_path: Path) -> None:
    del tmp_path
    topic = shared(broker)
    member = Member(ask, topic)
    member.fetch()
    written = []
    (hosted,) = broker.shares
    hosted._write_dead_letters = lambda _, letters: written.extend(letters)
    member.acknowledge((0, 5, (1, 3, 1, 3, 1, 1)))
    assert len(written) == 2
    broker.shares.evict(GROUP)  # as after a crash: what isn't persisted is gone
    other = Member(ask, topic, "other")
    assert acquired(other.fetch()) == []
    assert [letter[2]["__dlq.errors.offset"] for letter in letters(broker)] == [b"1", b"3"]
    (hosted,) = broker.shares
    assert hosted.machine is not None
    assert [run for run in hosted.machine.describe() if run.state is RecordState.ARCHIVING] == []


@pytest.mark.parametrize("settings", [AUTO])
def test_all_letters_of_a_request_are_written_together(
    broker: Broker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, each would decode the batch again: thousands of records would hold up the broker for seconds."""
    topic = shared(broker, errors_deadletterqueue_copy_record_enable="true")
    decoded: list[int] = []
    monkeypatch.setattr(
        dead_letters,
        "read_records",
        lambda data, header: decoded.append(header.base_offset) or read_records(data, header),
    )
    member = Member(ask, topic)
    member.fetch()
    member.acknowledge((0, 5, (3, 1, 3, 3, 1, 3)))
    assert [letter[1] for letter in letters(broker)] == [b"v0", b"v2", b"v3", b"v5"]
    assert decoded == [0, 2, 4]
    partition = broker.topics.partition("dlq.t", 0)
    assert partition is not None
    assert len(list(scan_batches(partition.log.read(0, 1 << 20, up_to=partition.log.log_end_offset)))) == 1
