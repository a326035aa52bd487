from __future__ import annotations

import uuid

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.topics import Topic
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from tests.broker.handlers.conftest import Ask, Deny, append_records
from tests.broker.share.groups import GROUP, Member, acquired, errors, initialized, share_acknowledge


@pytest.fixture
def topic(broker: Broker) -> Topic:
    made = broker.topics.create("t", 2)
    append_records(broker, "t", 0, 10)
    broker.share_state.start()
    initialized(broker, made)
    return made


@pytest.fixture
def member(ask: Ask, topic: Topic) -> Member:
    """A member that has ten records."""
    made = Member(ask, topic)
    assert acquired(made.fetch()) == [(0, 9, 1)]
    return made


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_accepted_released_and_rejected(ask: Ask, topic: Topic, member: Member, version: int) -> None:
    response = member.acknowledge((0, 4, 1), (5, 7, 2), (8, 9, 3), version=version)
    assert errors(response) == [(0, 0)]
    assert response.acquisition_lock_timeout_ms == (30_000 if version == 2 else 0)
    assert acquired(Member(ask, topic, "other").fetch()) == [(5, 7, 2)]


def test_all_acknowledgements_of_a_partition_are_taken_or_none(ask: Ask, topic: Topic, member: Member) -> None:
    assert errors(member.acknowledge((0, 4, 1), (5, 20, 1))) == [(ErrorCode.INVALID_REQUEST, 0)]
    assert errors(member.acknowledge((0, 9, 2))) == [(0, 0)]
    other = Member(ask, topic, "other")
    assert acquired(other.fetch()) == [(0, 9, 2)]
    assert errors(member.acknowledge((3, 3, 1))) == [(ErrorCode.INVALID_RECORD_STATE, 0)]
    assert errors(other.acknowledge((0, 9, 1))) == [(0, 0)]


def test_gaps_are_acknowledged_too(ask: Ask, topic: Topic, member: Member) -> None:
    assert errors(member.acknowledge((0, 9, (1, 0, 1, 0, 1, 0, 1, 0, 1, 0)))) == [(0, 0)]
    assert acquired(Member(ask, topic, "other").fetch()) == []


def test_locks_are_renewed(member: Member) -> None:
    assert errors(member.acknowledge((0, 9, 4), is_renew_ack=True)) == [(0, 0)]
    assert errors(member.acknowledge((0, 9, 4))) == [(ErrorCode.INVALID_REQUEST, 0)]
    assert errors(member.acknowledge((0, 9, 4), version=1)) == [(ErrorCode.INVALID_REQUEST, 0)]


def test_the_final_epoch_releases_the_rest(broker: Broker, ask: Ask, topic: Topic, member: Member) -> None:
    member.epoch = -1
    assert errors(member.acknowledge((0, 4, 1))) == [(0, 0)]
    assert len(broker.shares.sessions) == 0
    assert ask(share_acknowledge(topic, -1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acquired(Member(ask, topic, "other").fetch()) == [(5, 9, 2)]


def test_a_session_has_an_epoch(ask: Ask, topic: Topic, member: Member) -> None:
    assert ask(share_acknowledge(topic, 0)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ask(share_acknowledge(topic, 9)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ask(share_acknowledge(topic, 1, member="other")).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ask(share_acknowledge(topic, 1, (0, 9, 1))).error_code == 0


def test_what_is_not_there(ask: Ask, topic: Topic, member: Member) -> None:
    del member
    assert errors(ask(share_acknowledge(uuid.UUID(int=7), 1, (0, 0, 1)))) == [(ErrorCode.UNKNOWN_TOPIC_ID, 0)]
    assert errors(ask(share_acknowledge(topic, 2, (0, 0, 1), index=7))) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert errors(ask(share_acknowledge(topic, 3, (0, 0, 1), index=1))) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert errors(ask(share_acknowledge(topic, 4))) == []


def test_who_may_acknowledge(ask: Ask, deny: Deny, topic: Topic, member: Member) -> None:
    del member
    deny(Operation.READ, ResourceType.TOPIC, "t")
    assert errors(ask(share_acknowledge(topic, 1, (0, 0, 1)))) == [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
    deny(Operation.READ, ResourceType.GROUP, GROUP)
    assert ask(share_acknowledge(topic, 2, (0, 0, 1))).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "request_",
    [
        share_acknowledge(uuid.UUID(int=7), 1, group=None),
        share_acknowledge(uuid.UUID(int=7), 1, member=None),
        share_acknowledge(uuid.UUID(int=7), 1, member=""),
        share_acknowledge(uuid.UUID(int=7), 1, member="x" * 37),
    ],
)
def test_what_no_member_asks(ask: Ask, request_: ShareAcknowledgeRequest) -> None:
    assert ask(request_).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "acks", [[(5, 9, 1), (0, 4, 1)], [(0, 5, 1), (4, 9, 1)], [(4, 0, 1)], [(0, 9, (1, 1))], [(0, 9, 5)], [(0, 9, ())]]
)
def test_what_is_no_sound_acknowledgement(member: Member, acks: list[tuple[int, int, int]]) -> None:
    assert errors(member.acknowledge(*acks)) == [(ErrorCode.INVALID_REQUEST, 0)]
    assert errors(member.acknowledge((0, 9, 1))) == [(0, 0)]


def test_the_cost_of_a_range_is_not_its_length(member: Member) -> None:
    assert errors(member.acknowledge((0, 2**63 - 1, 1))) == [(ErrorCode.INVALID_REQUEST, 0)]
    many = [(offset * 10, offset * 10, 1) for offset in range(20_000)]
    assert errors(member.acknowledge(*many)) == [(ErrorCode.INVALID_REQUEST, 0)]
    assert errors(member.acknowledge((0, 9, 1))) == [(0, 0)]
