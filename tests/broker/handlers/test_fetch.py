"""Fetch: records, errors and sessions; `test_delayed_fetch` is about fetches that wait."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchRequest
from tests.broker.handlers.conftest import Ask, Deny, append_records
from tests.broker.handlers.served import Run, answer_of


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, ErrorCode.NONE)])
def test_topics_of_zstd_are_for_clients_that_know_it(with_server: Run, version: int, code: ErrorCode) -> None:
    part = FetchRequest.Topic.Partition(partition=0)
    request = FetchRequest(session_epoch=-1, topics=[FetchRequest.Topic(topic="t", partitions=[part])])
    response = answer_of(with_server, request, version, "compression.type=zstd")
    assert response.responses[0].partitions[0].error_code == code


def fetch(ask: Ask, name: str = "there", version: int = 12, *, session: tuple[int, int] = (0, -1), **asked: Any) -> Any:
    part = FetchRequest.Topic.Partition(**{"partition": 0, "partition_max_bytes": 1 << 20, **asked})
    topics = [FetchRequest.Topic(topic=name, partitions=[part])]
    request = FetchRequest(session_id=session[0], session_epoch=session[1], topics=topics, max_bytes=1 << 20)
    return ask(request, version)


def test_records_and_offsets_of_the_log(ask: Ask, broker: Broker) -> None:
    log = broker.topics.create("there", 1).partitions[0].log
    append_records(broker, "there", 0, 3)
    (part,) = fetch(ask, fetch_offset=1).responses[0].partitions
    assert (part.error_code, part.high_watermark, part.last_stable_offset, part.log_start_offset) == (0, 3, 3, 0)
    assert part.records == log.read(1, 1 << 20, up_to=3)


@pytest.mark.parametrize(
    ("name", "asked", "code"),
    [
        ("there", {"fetch_offset": 9}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("there", {"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("absent", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("there", {"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_partitions_that_cannot_be_read(
    name: str, asked: dict[str, int], code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    (part,) = fetch(ask, name, **asked).responses[0].partitions
    assert (part.error_code, part.high_watermark) == (code, -1)


def test_consumers_must_be_allowed_to_read(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    deny(Operation.READ, ResourceType.TOPIC, "there")
    assert fetch(ask).responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_an_incremental_fetch_is_answered_with_what_has_changed(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    full = fetch(ask, session=(0, 0))
    unchanged = fetch(ask, session=(full.session_id, 1))
    append_records(broker, "there", 0, 1)
    changed = fetch(ask, session=(full.session_id, 2))
    assert [len(response.responses) for response in (full, unchanged, changed)] == [1, 0, 1]


@pytest.mark.parametrize(
    ("epoch", "known", "code"),
    [(1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND), (7, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH)],
)
def test_sessions_that_the_broker_does_not_have(
    epoch: int, known: bool, code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    session_id = fetch(ask, session=(0, 0)).session_id
    assert fetch(ask, session=(session_id if known else session_id ^ 1, epoch)).error_code == code
