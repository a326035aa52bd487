"""Records of type 0 in `__share_group_state`: share snapshot."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid_


class ShareSnapshotKey(Data, key=0, versions="0"):
    """Key: the full state of one partition in a share group."""

    group_id: str = string("Id of the share group.")
    topic_id: UUID = uuid_("The topic's id.")
    partition: int = int32("The partition's number within its topic.")


class ShareSnapshotValue(Data, key=0, versions="0", flexible=0):
    """Value: everything known on a share-partition's deliveries, replacing all that came before."""

    class StateBatch(Struct):
        """A range of records with the same delivery state and count."""

        first_offset: int = int64("Where the range of records begins.")
        last_offset: int = int64("Where the range of records ends, itself included.")
        delivery_state: int = int8("0 = may be delivered, 2 = acknowledged, 4 = archived (given up or rejected).")
        delivery_count: int = int16("How often these records have been delivered so far.")

    snapshot_epoch: int = int32("Number of this snapshot, one more each time; updates refer to it.")
    state_epoch: int = int32("Rises when the state is initialized again, e.g. by altered offsets; fences old writes.")
    leader_epoch: int = int32("Leader epoch of the partition's leader that wrote the state; older ones are fenced.")
    start_offset: int = int64("First offset not yet done with; -1 = not set, the group's reset policy decides.")
    delivery_complete_count: int = int32(
        "How many offsets from StartOffset on are acknowledged or archived; -1 = unknown.", default=-1, tag=0
    )
    create_timestamp: int = int64("When the share-partition's state first came into being, in ms since 1970.")
    write_timestamp: int = int64("When this snapshot was taken or repeated, in ms since 1970.")
    state_batches: list[StateBatch] = array(
        StateBatch, "Ranges of records from StartOffset on, with their delivery state."
    )
