from __future__ import annotations

import uuid

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.topics import Topic
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.records.batch import check_batches
from tests.broker.handlers.conftest import Ask, Deny, append_records
from tests.broker.share.groups import GROUP, Member, acquired, errors, initialized, share_fetch


@pytest.fixture
def topic(broker: Broker) -> Topic:
    """A topic of two partitions, with ten records in the first, that a group begins at its start."""
    made = broker.topics.create("t", 2)
    append_records(broker, "t", 0, 10)
    broker.share_state.start()
    initialized(broker, made)
    return made


@pytest.fixture
def member(ask: Ask, topic: Topic) -> Member:
    return Member(ask, topic)


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_locked_for_the_member_that_gets_them(ask: Ask, topic: Topic, member: Member, version: int) -> None:
    response = member.fetch(version)
    assert acquired(response) == [(0, 9, 1)]
    assert response.acquisition_lock_timeout_ms == 30_000
    records = response.responses[0].partitions[0].records
    assert [header.base_offset for header in check_batches(records)] == list(range(10))
    assert acquired(Member(ask, topic, "other").fetch(version)) == []


def test_no_more_records_are_locked_than_wanted_and_others_get_the_rest(ask: Ask, topic: Topic, member: Member) -> None:
    response = member.fetch(max_records=4)
    assert acquired(response) == [(0, 3, 1)]
    assert len(list(check_batches(response.responses[0].partitions[0].records))) == 4
    assert acquired(Member(ask, topic, "other").fetch()) == [(4, 9, 1)]


@pytest.mark.parametrize(("mode", "expected"), [(0, [(0, 3, 1)]), (1, [(0, 1, 1)])])
def test_the_acquire_mode_says_how_strict_the_limit_is(
    broker: Broker, ask: Ask, mode: int, expected: list[tuple[int, int, int]]
) -> None:
    from kohort.protocol.records.rows import encode_records
    from tests.broker.handlers.conftest import NOW, append

    made = broker.topics.create("batched", 1)
    append(broker, "batched", 0, encode_records([(b"k", b"v")] * 4, NOW), encode_records([(b"k", b"v")] * 4, NOW))
    broker.share_state.start()
    initialized(broker, made)
    assert acquired(Member(ask, made).fetch(max_records=2, share_acquire_mode=mode)) == expected


def test_acknowledgements_come_with_the_next_fetch(ask: Ask, topic: Topic, member: Member) -> None:
    member.fetch()
    response = member.fetch(acks=[(0, 4, 1), (5, 7, 2), (8, 9, (3, 1))])
    assert errors(response) == [(0, 0)]
    assert acquired(response) == [(5, 7, 2)]
    assert errors(member.fetch(acks=[(0, 4, 1)])) == [(0, 0)]  # before the start offset: taken without a change
    assert errors(member.fetch(acks=[(8, 8, 1)])) == [(0, ErrorCode.INVALID_RECORD_STATE)]


def test_the_first_response_has_all_partitions_and_the_next_those_with_news(member: Member) -> None:
    assert errors(member.fetch(indexes=[0, 1])) == [(0, 0), (0, 0)]
    assert errors(member.fetch(indexes=[])) == []


def test_the_final_epoch_acknowledges_and_releases_the_rest(
    broker: Broker, ask: Ask, topic: Topic, member: Member
) -> None:
    member.fetch()
    member.epoch = -1
    response = member.fetch(acks=[(0, 3, 1)])
    assert errors(response) == [(0, 0)]
    assert acquired(response) == []
    assert len(broker.shares.sessions) == 0
    assert acquired(Member(ask, topic, "other").fetch()) == [(4, 9, 2)]


def test_a_session_has_an_epoch(ask: Ask, topic: Topic, member: Member) -> None:
    assert ask(share_fetch(topic, 1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ask(share_fetch(topic, -1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.fetch()
    assert ask(share_fetch(topic, 2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ask(share_fetch(topic, 0, acks=[(0, 0, 1)])).error_code == ErrorCode.INVALID_REQUEST
    assert ask(share_fetch(topic, 1)).error_code == 0


@pytest.mark.parametrize("settings", [{"group.share.max.share.sessions": 1}])
def test_there_are_only_so_many_sessions(ask: Ask, topic: Topic, member: Member) -> None:
    member.fetch()
    assert ask(share_fetch(topic, member="other")).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert ask(share_fetch(topic)).error_code == 0  # the member's own, anew


def test_partitions_are_forgotten_and_come_back(topic: Topic, member: Member, broker: Broker) -> None:
    append_records(broker, "t", 1, 3)
    response = member.fetch(indexes=[0, 1], max_records=1)
    assert acquired(response, 0) == [(0, 0, 1)]
    response = member.fetch(indexes=[], forget=[0])
    assert (acquired(response, 0), acquired(response, 1)) == ([], [(0, 2, 1)])


def test_partitions_take_turns(topic: Topic, member: Member, broker: Broker) -> None:
    append_records(broker, "t", 1, 10)
    first = [
        response.responses[0].partitions[0].partition_index
        for response in (member.fetch(indexes=[0, 1], max_records=1), member.fetch(indexes=[], max_records=1))
    ]
    assert sorted(first) == [0, 1]


def test_what_is_not_there(ask: Ask, topic: Topic) -> None:
    assert errors(ask(share_fetch(uuid.UUID(int=7)))) == [(ErrorCode.UNKNOWN_TOPIC_ID, 0)]
    assert errors(ask(share_fetch(topic, indexes=[2, -1]))) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)] * 2
    assert errors(ask(share_fetch(topic, group="unknown"))) == [(ErrorCode.UNKNOWN_SERVER_ERROR, 0)]


def test_an_error_is_told_until_it_is_gone_and_once_more(ask: Ask, topic: Topic, member: Member) -> None:
    del ask
    assert errors(member.fetch(indexes=[1, 2])) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0), (0, 0)]
    assert errors(member.fetch(indexes=[])) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert errors(member.fetch(indexes=[], forget=[2])) == []


def test_who_may_fetch(ask: Ask, deny: Deny, topic: Topic) -> None:
    deny(Operation.READ, ResourceType.TOPIC, "t")
    assert errors(ask(share_fetch(topic))) == [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
    deny(Operation.READ, ResourceType.GROUP, GROUP)
    assert ask(share_fetch(topic)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "request_",
    [
        share_fetch(uuid.UUID(int=7), group=None),
        share_fetch(uuid.UUID(int=7), member=None),
        share_fetch(uuid.UUID(int=7), member=""),
        share_fetch(uuid.UUID(int=7), member="x" * 37),
        share_fetch(uuid.UUID(int=7), share_acquire_mode=2),
        share_fetch(uuid.UUID(int=7), is_renew_ack=True),
    ],
)
def test_what_no_member_asks(ask: Ask, request_: ShareFetchRequest) -> None:
    assert ask(request_).error_code == ErrorCode.INVALID_REQUEST


def test_a_renewal_brings_no_records(member: Member) -> None:
    member.fetch(max_records=3)
    response = member.fetch(acks=[(0, 2, 4)], is_renew_ack=True, max_records=0, max_bytes=0, min_bytes=0, batch_size=0)
    assert errors(response) == [(0, 0)]
    assert acquired(response) == []
    assert errors(member.fetch(acks=[(0, 2, 1)])) == [(0, 0)]


@pytest.mark.parametrize("fields", [{"max_records": 0}, {"max_bytes": 0}, {"max_records": -5}, {"max_bytes": -1}])
def test_who_wants_nothing_gets_nothing(member: Member, fields: dict[str, int]) -> None:
    assert errors(member.fetch(**fields)) == []


def test_a_batch_larger_than_wanted_comes_all_the_same(member: Member) -> None:
    assert acquired(member.fetch(max_bytes=1)) == [(0, 0, 1)]
    assert acquired(member.fetch(max_bytes=1)) == [(1, 1, 1)]
