"""Requests of members of a classic group."""

from __future__ import annotations

from typing import Any

from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.handlers.conftest import Ask


def join(ask: Ask, group_id: str = "g", version: int = 3, **fields: Any) -> Any:
    """A join; from version 4 on, the first one only gives the member its id."""
    protocols = [JoinGroupRequest.Protocol(name="range", metadata=b"m")]
    request = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    return ask(JoinGroupRequest(group_id=group_id, **{**request, "protocols": protocols, **fields}), version)


def sync(ask: Ask, member_id: str, *, generation: int = 1, assignment: bytes = b"a", version: int = 4) -> Any:
    assignments = [SyncGroupRequest.Assignment(member_id=member_id, assignment=assignment)]
    request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, assignments=assignments)
    return ask(request, version)


def stable_member(ask: Ask) -> str:
    """The id of the one member of the stable group "g", whose generation is 1."""
    member_id = join(ask).member_id
    assert sync(ask, member_id).error_code == 0
    assert isinstance(member_id, str)
    return member_id


def commit(ask: Ask, *places: tuple[str, int], version: int = 9, offset: int = 5, **fields: Any) -> dict[Any, int]:
    """Commits an offset for each (topic, partition); returns error codes."""
    wanted = OffsetCommitRequest.Topic
    topics = [
        wanted(name=name, partitions=[wanted.Partition(partition_index=index, committed_offset=offset)])
        for name, index in places
    ]
    request = {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": topics}
    response = ask(OffsetCommitRequest(**{**request, **fields}), version)
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
