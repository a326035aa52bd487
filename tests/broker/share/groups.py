"""Share groups without membership: requests of members, and initialized share partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kohort.broker.broker import Broker
from kohort.broker.reply import Reply, when_replied
from kohort.broker.topics import Topic
from kohort.coordinator.share_state import Outcome
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from tests.broker.handlers.conftest import Ask

GROUP = "workers"
MEMBER = "member-1"

Acks = Sequence[tuple[int, int, int | tuple[int, ...]]]
"""First and last offset, and the type of all, or of each."""

_Fetched = ShareFetchRequest.Topic.Partition
_Acknowledged = ShareAcknowledgeRequest.Topic.Partition


def initialized(
    broker: Broker, topic: Topic, group: str = GROUP, *, start_offset: int = 0, state_epoch: int = 0
) -> list[Reply[Outcome]]:
    """Initializes the state of a topic's share partitions, as the group coordinator does."""
    replies = []
    for partition in topic.partitions:
        outcome = broker.share_state.initialize(group, topic.id, partition.index, state_epoch, start_offset)
        when_replied(outcome, _succeeded)
        if isinstance(outcome, Reply):
            replies.append(outcome)
    return replies


def _succeeded(outcome: Outcome) -> None:
    assert outcome.error_code is ErrorCode.NONE, outcome


def share_fetch(
    topic: Topic | UUID,
    epoch: int = 0,
    *,
    acks: Acks = (),
    indexes: Sequence[int] = (0,),
    member: str | None = MEMBER,
    group: str | None = GROUP,
    max_wait_ms: int = 0,
    max_records: int = 500,
    max_bytes: int = 1 << 20,
    min_bytes: int = 1,
    forget: Sequence[int] = (),
    **fields: Any,
) -> ShareFetchRequest:
    """A fetch of some partitions of a topic; the acknowledgements are for the first of them."""
    topic_id = topic if isinstance(topic, UUID) else topic.id
    partitions = [_Fetched(partition_index=index) for index in indexes]
    if acks:
        partitions[0].acknowledgement_batches = [
            _Fetched.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=_types(types))
            for first, last, types in acks
        ]
    forgotten = ShareFetchRequest.ForgottenTopicsData(topic_id=topic_id, partitions=tuple(forget))
    return ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        max_records=max_records,
        batch_size=fields.pop("batch_size", max_records),
        topics=[ShareFetchRequest.Topic(topic_id=topic_id, partitions=partitions)] if partitions else [],
        forgotten_topics_data=[forgotten] if forget else [],
        **fields,
    )


def share_acknowledge(
    topic: Topic | UUID,
    epoch: int,
    *acks: tuple[int, int, int | tuple[int, ...]],
    index: int = 0,
    member: str | None = MEMBER,
    group: str | None = GROUP,
    is_renew_ack: bool = False,
) -> ShareAcknowledgeRequest:
    partition = _Acknowledged(
        partition_index=index,
        acknowledgement_batches=[
            _Acknowledged.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=_types(types))
            for first, last, types in acks
        ],
    )
    topic_id = topic if isinstance(topic, UUID) else topic.id
    return ShareAcknowledgeRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        is_renew_ack=is_renew_ack,
        topics=[ShareAcknowledgeRequest.Topic(topic_id=topic_id, partitions=[partition])],
    )


def acquired(response: ShareFetchResponse, index: int = 0) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of what was acquired of a partition."""
    assert response.error_code == 0, ErrorCode(response.error_code)
    return [
        (record.first_offset, record.last_offset, record.delivery_count)
        for topic in response.responses
        for partition in topic.partitions
        if partition.partition_index == index
        for record in partition.acquired_records
    ]


def errors(response: Any) -> list[tuple[int, int]]:
    """Error and acknowledgement error of each partition."""
    assert response.error_code == 0, ErrorCode(response.error_code)
    return [
        (partition.error_code, getattr(partition, "acknowledge_error_code", 0))
        for topic in response.responses
        for partition in topic.partitions
    ]


class Member:
    """A member whose requests have the epochs of its session."""

    def __init__(self, ask: Ask, topic: Topic, name: str = MEMBER, group: str = GROUP, **session: Any) -> None:
        self._ask = ask
        self._topic = topic
        self._name = name
        self._group = group
        self._session = session
        self.epoch = 0

    def fetch(self, version: int | None = None, **fields: Any) -> Any:
        request = share_fetch(self._topic, self.epoch, member=self._name, group=self._group, **fields)
        self.epoch += 1
        return self._ask(request, version, **self._session)

    def acknowledge(
        self, *acks: tuple[int, int, int | tuple[int, ...]], version: int | None = None, **fields: Any
    ) -> Any:
        request = share_acknowledge(self._topic, self.epoch, *acks, member=self._name, group=self._group, **fields)
        self.epoch += 1
        return self._ask(request, version, **self._session)


def _types(types: int | tuple[int, ...]) -> tuple[int, ...]:
    return (types,) if isinstance(types, int) else types
