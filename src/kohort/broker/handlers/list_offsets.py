"""ListOffsets: offsets by timestamp, or the earliest and latest."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.expansion import Expansion
from kohort.broker.handlers import Served
from kohort.broker.topics import Partition
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

SERVED: Final = Served(ListOffsetsRequest, versions=(1, 11))

_Requested = ListOffsetsRequest.Topic.Partition
_Found = ListOffsetsResponse.Topic.Partition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

SINCE: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The first version of each special timestamp; refused in older ones."""

WITH_EPOCH: Final = 4
"""First version with the leader epoch."""

READ_COMMITTED: Final = 1


def handle(request: ListOffsetsRequest, context: Context) -> Slices[ListOffsetsResponse]:
    topics = []
    seen: set[tuple[str, int]] = set()
    for requested in request.topics:
        yield
        allowed = context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, requested.name)
        found = []
        for wanted in requested.partitions:
            yield
            if (requested.name, wanted.partition_index) in seen:
                found.append(_failed(wanted, ErrorCode.INVALID_REQUEST))
                continue
            seen.add((requested.name, wanted.partition_index))
            if not allowed:
                found.append(_failed(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            partition = context.broker.topics.partition(requested.name, wanted.partition_index)
            answer = yield from _look_up(wanted, partition, request.isolation_level == READ_COMMITTED, context)
            found.append(answer)
        topics.append(ListOffsetsResponse.Topic(name=requested.name, partitions=found))
    return ListOffsetsResponse(topics=topics)


def _failed(wanted: _Requested, code: ErrorCode) -> _Found:
    return _Found(partition_index=wanted.partition_index, error_code=code, timestamp=-1, offset=-1)


def _look_up(wanted: _Requested, partition: Partition | None, committed: bool, context: Context) -> Slices[_Found]:
    version = context.version
    if partition is None:
        return _failed(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if version < SINCE.get(wanted.timestamp, 0):
        return _failed(wanted, ErrorCode.UNSUPPORTED_VERSION)
    if fenced := partition.epoch_error(wanted.current_leader_epoch):
        return _failed(wanted, fenced)
    if partition.offline is not None:
        return _failed(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
    log = partition.log
    end = log.last_stable_offset if committed else log.high_watermark
    epoch = partition.leader_epoch
    try:
        match wanted.timestamp:
            case t if t == LATEST:
                found = (end, -1, epoch)
            case t if t in (EARLIEST, EARLIEST_LOCAL):
                found = (log.log_start_offset, -1, epoch)
            case t if t in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
                found = (-1, -1, -1)  # nothing is ever tiered
            case t if t < 0 and t != MAX_TIMESTAMP:
                return _failed(wanted, ErrorCode.UNSUPPORTED_VERSION)
            case t:
                with Expansion(context.broker.expansions) as expansion:
                    if t == MAX_TIMESTAMP:
                        at = yield from log.search_max_timestamp(expansion.expand)
                    else:
                        at = yield from log.search_timestamp(t, expand=expansion.expand)
                found = at or (-1, -1, -1)
                if found[0] >= end:
                    found = (-1, -1, -1)
    except KafkaError as error:
        return _failed(wanted, error.code)
    offset, timestamp, leader_epoch = found
    answer = _Found(partition_index=wanted.partition_index, timestamp=timestamp, offset=offset)
    if version >= WITH_EPOCH:
        answer.leader_epoch = leader_epoch
    return answer
