"""Records of type 0 and 1 in `__consumer_offsets`: offset commit."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import int32, int64, string, uuid_


class OffsetCommitKey(Data, key=1, versions="0"):
    """Key: the offset that a group committed for a partition."""

    group: str = string("Id of the group that committed.")
    topic: str = string("Name of the topic read.")
    partition: int = int32("The partition's number within its topic.")


class OffsetCommitValue(Data, key=1, versions="0-4", flexible=4):
    """Value: the committed offset with a note and its times.

    - v1: expireTimestamp, for commits that set a retention time
    - v2: expireTimestamp is gone again
    - v3: leaderEpoch
    - v4: flexible, with topicId as a tagged field
    """

    offset: int = int64("Next offset the group will read in this partition.")
    leader_epoch: int = int32(
        "Epoch of the leader that wrote the last record processed; -1 = unknown.", since=3, default=-1, ignorable=True
    )
    metadata: str = string("The client's own note; empty = none.")
    commit_timestamp: int = int64("When the offset was committed, in ms since 1970.")
    expire_timestamp: int = int64(
        "When the offset may be dropped, in ms since 1970; -1 = as configured.",
        since=1,
        until=1,
        default=-1,
        ignorable=True,
    )
    topic_id: UUID = uuid_("The topic's id; all zero when the commit did not name it.", since=4, ignorable=True, tag=0)


class LegacyOffsetCommitKey(Data, key=0, versions="0"):
    """Key in the oldest format: the offset that a group committed for a partition."""

    group: str = string("Id of the group that committed.")
    topic: str = string("Name of the topic read.")
    partition: int = int32("The partition's number within its topic.")


class LegacyOffsetCommitValue(Data, key=0, versions="0"):
    """Value in the oldest format: the committed offset and a note."""

    offset: int = int64("Next offset the group will read in this partition.")
    metadata: str = string("The client's own note; empty = none.")
    commit_timestamp: int = int64("When the offset was committed, in ms since 1970.")
