"""OffsetFetch: the committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.offset_requests import TopicMerger, portions
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.schema import NO_UUID

SERVED: Final = Served(OffsetFetchRequest, versions=(1, 10))

_Requested = OffsetFetchRequest.Group
_Group = OffsetFetchResponse.Group

TOP_LEVEL_ERROR: Final = 2
"""First version with an error of the whole group; before, there are errors only for partitions."""
BATCHED: Final = 8
"""First version with several groups."""
BY_ID: Final = 10
"""First version that identifies topics by id."""


def handle(request: OffsetFetchRequest, context: Context) -> Slices[OffsetFetchResponse]:
    """Fetches the offsets of one group, or since v8 of several."""
    if context.version >= BATCHED:
        groups = {group.group_id: group for group in request.groups}  # once each: a request may be for all offsets
        fetched = []
        for each in groups.values():
            one = yield from _fetch(each, request.require_stable, context)
            fetched.append(one)
        return OffsetFetchResponse(groups=fetched)
    topics = (
        None
        if request.topics is None
        else [_Requested.Topic(name=topic.name, partition_indexes=topic.partition_indexes) for topic in request.topics]
    )
    found = yield from _fetch(_Requested(group_id=request.group_id, topics=topics), request.require_stable, context)
    if found.error_code and context.version < TOP_LEVEL_ERROR and request.topics:
        found.topics = []
        for topic in request.topics:
            of_topic = yield from _failed(topic.name, NO_UUID, topic.partition_indexes, ErrorCode(found.error_code))
            found.topics.append(of_topic)
    answers = []
    for each_topic in found.topics:
        yield
        partitions = yield from in_slices(_before_groups, each_topic.partitions)
        answers.append(OffsetFetchResponse.Topic(name=each_topic.name, partitions=partitions))
    return OffsetFetchResponse(topics=answers, error_code=found.error_code)


def _before_groups(partition: _Group.Topic.Partition) -> OffsetFetchResponse.Topic.Partition:
    """The same as it was before a response had several groups."""
    return OffsetFetchResponse.Topic.Partition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def _fetch(requested: _Requested, require_stable: bool, context: Context) -> Slices[_Group]:
    yield
    if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, requested.group_id):
        return _Group(group_id=requested.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[_Group.Topic] = []
    wanted: list[_Requested.Topic] | None = None
    if requested.topics is not None:
        wanted = []
        for topic in requested.topics:
            yield
            error = _resolve_name(topic, context)
            if error:
                of_topic = yield from _failed(topic.name, topic.topic_id, topic.partition_indexes, error)
                refused.append(of_topic)
            else:
                wanted.append(topic)
    try:
        entry = context.broker.groups.entry(requested.group_id)
    except KafkaError as error:
        return _Group(group_id=requested.group_id, error_code=error.code)
    offsets = entry.shard.offsets
    found = _Group(group_id=requested.group_id)
    merger = TopicMerger(found.topics)
    everything = offsets.everything(requested.group_id) if wanted is None else wanted
    for portion in portions(everything, lambda topic: topic.partition_indexes, _part):
        group = _Requested(
            group_id=requested.group_id,
            member_id=requested.member_id,
            member_epoch=requested.member_epoch,
            topics=portion,
        )
        fetched = offsets.fetch(group, require_stable=require_stable)
        if fetched.error_code:
            return fetched
        merger.add(fetched.topics)
        yield
    if wanted is None:
        found.topics = [
            topic for topic in found.topics if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
    found.topics.extend(refused)
    for answer in found.topics:
        if context.version >= BY_ID:
            if answer.topic_id == NO_UUID and (existing := context.broker.topics.get(answer.name)) is not None:
                answer.topic_id = existing.id
            answer.name = ""
        else:
            answer.topic_id = NO_UUID
        yield
    if context.version >= BY_ID and wanted is None:
        found.topics = [topic for topic in found.topics if topic.topic_id != NO_UUID]  # without those of deleted topics
    return found


def _part(topic: _Requested.Topic, indexes: Sequence[int]) -> _Requested.Topic:
    return _Requested.Topic(name=topic.name, topic_id=topic.topic_id, partition_indexes=tuple(indexes))


def _resolve_name(topic: _Requested.Topic, context: Context) -> ErrorCode:
    """Sets a topic's name where the version has ids; returns the error, or NONE."""
    if context.version >= BY_ID:
        known = context.broker.topics.by_id(topic.topic_id)
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        topic.name = known.name
    if not context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _failed(name: str, topic_id: UUID, indexes: Iterable[int], code: ErrorCode) -> Slices[_Group.Topic]:
    partitions = yield from in_slices(
        lambda index: _Group.Topic.Partition(
            partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code
        ),
        indexes,
    )
    return _Group.Topic(name=name, topic_id=topic_id, partitions=partitions)
