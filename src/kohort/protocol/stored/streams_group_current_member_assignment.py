"""Records of type 22 in `__consumer_offsets`: streams group current member assignment."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int8, int32, string


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string("Which subtopology the tasks belong to.")
    partitions: tuple[int, ...] = array(int32, "Partition numbers; each makes one task of the subtopology.")
    assignment_epochs: tuple[int, ...] | None = array(
        int32,
        "Member epoch in which each partition came, to fence commits; null if not active.",
        nullable=True,
        default=(),
        tag=0,
    )


class StreamsGroupCurrentMemberAssignmentKey(Data, key=22, versions="0"):
    """Key: what one member of a streams group holds at present."""

    group_id: str = string("Id of the streams group.")
    member_id: str = string("Member of the group that this record is about.")


class StreamsGroupCurrentMemberAssignmentValue(Data, key=22, versions="0", flexible=0):
    """Value: a streams group member's epoch, its tasks and how far it has got in the rebalance."""

    member_epoch: int = int32("Member epoch that the next heartbeat must carry.")
    previous_member_epoch: int = int32("Member epoch before the last bump, accepted in case its reply got lost.")
    state: int = int8("1 = stable, 2 = has tasks to revoke, 3 = waits for others to release some.")
    active_tasks: list[TaskIds] = array(TaskIds, "Tasks that the member processes now.")
    standby_tasks: list[TaskIds] = array(TaskIds, "Standby tasks: state copies the member keeps in reserve.")
    warmup_tasks: list[TaskIds] = array(
        TaskIds, "Warm-up tasks: state the member restores so as to take over the active task."
    )
    active_tasks_pending_revocation: list[TaskIds] = array(
        TaskIds, "Active tasks the member was told to give up, not yet released."
    )
    standby_tasks_pending_revocation: list[TaskIds] = array(
        TaskIds, "Standby tasks the member was told to give up, not yet released."
    )
    warmup_tasks_pending_revocation: list[TaskIds] = array(
        TaskIds, "Warm-up tasks the member was told to give up, not yet released."
    )
