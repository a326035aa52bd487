"""Records of type 1 in `__share_group_state`: share update."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid_


class ShareUpdateKey(Data, key=1, versions="0"):
    """Key: a change since the last snapshot of one partition in a share group."""

    group_id: str = string("Id of the share group.")
    topic_id: UUID = uuid_("The topic's id.")
    partition: int = int32("The partition's number within its topic.")


class ShareUpdateValue(Data, key=1, versions="0", flexible=0):
    """Value: a change to apply on top of a share-partition's last snapshot."""

    class StateBatch(Struct):
        """A range of records with the same delivery state and count."""

        first_offset: int = int64("Where the range of records begins.")
        last_offset: int = int64("Where the range of records ends, itself included.")
        delivery_state: int = int8("0 = may be delivered, 2 = acknowledged, 4 = archived (given up or rejected).")
        delivery_count: int = int16("How often these records have been delivered so far.")

    snapshot_epoch: int = int32("SnapshotEpoch of the snapshot that this builds on.")
    leader_epoch: int = int32("Leader epoch of the partition's leader that wrote the state; older ones are fenced.")
    start_offset: int = int64("New first offset not yet done with; -1 = as it was.")
    delivery_complete_count: int = int32(
        "How many offsets from StartOffset on are acknowledged or archived; -1 = unknown.", default=-1, tag=0
    )
    state_batches: list[StateBatch] = array(StateBatch, "Ranges of records whose delivery state has changed.")
