"""Records of type 21 in `__consumer_offsets`: streams group target assignment member."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string("Which subtopology the tasks belong to.")
    partitions: tuple[int, ...] = array(int32, "Partition numbers; each makes one task of the subtopology.")


class StreamsGroupTargetAssignmentMemberKey(Data, key=21, versions="0"):
    """Key: what one member of a streams group shall hold in the end."""

    group_id: str = string("Id of the streams group.")
    member_id: str = string("Member of the group that this record is about.")


class StreamsGroupTargetAssignmentMemberValue(Data, key=21, versions="0", flexible=0):
    """Value: tasks that a streams group member holds once the rebalance is through."""

    active_tasks: list[TaskIds] = array(TaskIds, "Tasks that the member shall process.")
    standby_tasks: list[TaskIds] = array(TaskIds, "Standby tasks: state copies the member shall keep in reserve.")
    warmup_tasks: list[TaskIds] = array(TaskIds, "Warm-up tasks: state the member shall restore before it takes over.")
