"""Fetch sessions, with the broker's own bookkeeping as a witness."""

from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.broker.fetch_sessions import FetchSessions
from kohort.client.consuming.fetch_session import FetchSession, PartitionFetch
from kohort.client.types import TopicPartition
from kohort.log.slices import in_one_go
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID

Wanted = dict[TopicPartition, PartitionFetch]
ASK = st.tuples(st.integers(1, 2), st.integers(0, 2)).map(lambda it: PartitionFetch(UUID(int=it[0]), it[1], 100, 0))
WANTED = st.dictionaries(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 2)), ASK, max_size=4)


def consistent(wanted: Wanted, *, by_id: bool) -> Wanted:
    """Partitions of one topic have one id, and topics have different ones; by name, they have none."""
    ids = {at.topic: ask.topic_id for at, ask in wanted.items()}
    return {
        at: ask._replace(topic_id=UUID(int=ids[at.topic].int * 16 + ord(at.topic)) if by_id else NO_UUID)
        for at, ask in wanted.items()
    }


def sent(request: FetchRequest, *, by_id: bool) -> FetchRequest:
    """As it comes over the wire."""
    version = 17 if by_id else 12
    return FetchRequest.decode(request.encode(version), version)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WANTED, st.sampled_from(["answer", "lose", "forget", "full"])), max_size=8), st.booleans())
def test_the_broker_reads_what_is_wanted_whatever_happens(steps: list[tuple[Wanted, str]], by_id: bool) -> None:
    numbers = count(1)
    broker = FetchSessions(10, lambda: next(numbers))
    session = FetchSession()
    for raw, event in steps:
        wanted = consistent(raw, by_id=by_id)
        if event == "forget":
            broker = FetchSessions(10, lambda: next(numbers))
        if event == "full":
            broker = FetchSessions(0, lambda: next(numbers))
        try:
            theirs = in_one_go(broker.update(sent(session.request(wanted, by_id=by_id), by_id=by_id), 0, by_id=by_id))
        except KafkaError as error:
            assert event in ("forget", "full")
            assert session.handle_response(FetchResponse(error_code=error.code)) == []
            theirs = in_one_go(broker.update(sent(session.request(wanted, by_id=by_id), by_id=by_id), 0, by_id=by_id))
        read = {(each.topic_id if by_id else each.name, each.index): each.offset for each in theirs.partitions.values()}
        assert read == {(ask.topic_id if by_id else at.topic, at.partition): ask.offset for at, ask in wanted.items()}
        if event == "lose":
            session.reset()
        else:
            session.handle_response(FetchResponse(session_id=theirs.id))


def test_only_what_changes_is_asked_and_answers_find_their_partitions() -> None:
    session = FetchSession()
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    topic_id = UUID(int=5)
    ask = PartitionFetch(topic_id, 0, 100, 3)
    first = session.request({a: ask, b: ask}, by_id=True)
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert [each.partition for each in first.topics[0].partitions] == [0, 1]
    read = FetchResponse.TopicResponse.Partition(
        partition_index=1, error_code=0, high_watermark=9, log_start_offset=0, records=b""
    )
    answer = FetchResponse(
        session_id=7,
        responses=[
            FetchResponse.TopicResponse(topic_id=topic_id, partitions=[read]),
            FetchResponse.TopicResponse(topic_id=UUID(int=6), partitions=[read]),
        ],
    )
    assert session.handle_response(answer) == [(b, ask, read)]
    second = session.request({a: ask, b: ask._replace(offset=4)}, by_id=True)
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert [(each.partition, each.fetch_offset) for each in second.topics[0].partitions] == [(1, 4)]
    session.handle_response(FetchResponse(session_id=7))
    third = session.request({b: ask._replace(offset=4)}, by_id=True)
    assert third.session_epoch == 2
    assert not third.topics
    assert third.forgotten_topics_data[0].partitions == (0,)


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_an_error_resets_the_session(code: ErrorCode) -> None:
    session = FetchSession()
    a = TopicPartition("t", 0)
    ask = PartitionFetch(NO_UUID, 0, 100, 3)
    session.request({a: ask}, by_id=False)
    session.handle_response(FetchResponse(session_id=7))
    session.request({a: ask}, by_id=False)
    assert session.handle_response(FetchResponse(error_code=code)) == []
    again = session.request({a: ask}, by_id=False)
    assert (again.session_id, again.session_epoch, len(again.topics)) == (0, 0, 1)
