"""Records of type 20 in `__consumer_offsets`: streams group target assignment metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import int32, int64, string


class StreamsGroupTargetAssignmentMetadataKey(Data, key=20, versions="0"):
    """Key: the target assignment of a streams group as a whole."""

    group_id: str = string("Id of the streams group.")


class StreamsGroupTargetAssignmentMetadataValue(Data, key=20, versions="0", flexible=0):
    """Value: the epoch of a streams group's target assignment."""

    assignment_epoch: int = int32("Group epoch that the target assignment was computed for.")
    assignment_timestamp: int = int64(
        "When it was computed, in ms since 1970; 0 = not known, as before Kafka 4.3.", tag=0, ignorable=True
    )
