"""Records of type 17 in `__consumer_offsets`: streams group metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, int64, string


class LastAssignmentConfig(Struct):
    """One setting of the assignor."""

    key: str = string("Name of the setting.")
    value: str = string("What it was set to, as text.")


class StreamsGroupMetadataKey(Data, key=17, versions="0"):
    """Key: a streams group itself."""

    group_id: str = string("Id of the streams group.")


class StreamsGroupMetadataValue(Data, key=17, versions="0", flexible=0):
    """Value: a streams group's epoch, and the topics, topology and settings that it was computed from."""

    epoch: int = int32("Group epoch, bumped when subscriptions, members or topics change.")
    metadata_hash: int = int64("Fingerprint of the topics' metadata; 0 = none. A change means rebalance.")
    validated_topology_epoch: int = int32(
        "Newest topology epoch whose topics all proved to be in order; -1 = none.", default=-1, tag=0
    )
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig,
        "Settings the assignor last ran with, e.g. the number of standbys; null = unknown.",
        nullable=True,
        default=[],
        tag=1,
    )
