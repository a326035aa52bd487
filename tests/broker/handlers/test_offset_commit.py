"""OffsetCommit: committed offsets of groups."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import commit, stable_member


def test_each_partition_has_its_outcome(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert commit(ask, ("there", 0), ("there", 9), ("absent", 0)) == {
        ("there", 0): ErrorCode.NONE,
        ("there", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_since_version_10_topics_have_ids(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    wanted = OffsetCommitRequest.Topic
    parts = [wanted.Partition(partition_index=0, committed_offset=5)]
    topics = [wanted(topic_id=which, partitions=parts) for which in (topic.id, UUID(int=5))]
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    codes = {each.topic_id: each.partitions[0].error_code for each in ask(request, 10).topics}
    assert codes == {topic.id: ErrorCode.NONE, UUID(int=5): ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody", "generation_id_or_member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id_or_member_epoch": 7}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_commits_that_are_refused(fields: dict[str, object], code: ErrorCode, ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    request = {"member_id": stable_member(ask), **fields}
    assert commit(ask, ("there", 0), **request) == {("there", 0): code}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_members_must_be_allowed_to_read(
    kind: ResourceType, code: ErrorCode, ask: Ask, broker: Broker, deny: Deny
) -> None:
    broker.topics.create("there", 1)
    deny(Operation.READ, kind)
    assert commit(ask, ("there", 0)) == {("there", 0): code}


def test_an_offset_may_be_kept_for_ever(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert commit(ask, ("there", 0), version=2, retention_time_ms=2**63 - 1) == {("there", 0): ErrorCode.NONE}
