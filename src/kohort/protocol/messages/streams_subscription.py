"""StreamsSubscription: what a member of a classic streams group tells its leader, as bytes in JoinGroup."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
)
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string, struct


class StreamsSubscription(Data, versions="1-3", flexible=1):
    """What a member of a classic streams group (protocol type "stream") has, for the leader; Kohort's own.

    Two bytes with the version come before it. Every later version begins with the same three fields, so that an older
    leader can read them of a newer member (KIP-268): LatestSupportedVersion, LeaderVersion, HasTasks.

    - v1: task ids alone
    - v2: StateStores, the number of state stores of each task (KIP-262)
    - v3: offsets (KIP-441), warm-ups, process, endpoint, tags, rack, the topology itself
    """

    class PreviousTasks(Struct):
        """Tasks of one subtopology that the member has."""

        subtopology_id: str = string("Subtopology the tasks run.")
        partitions: tuple[int, ...] = array(
            int32, "Partition number of each task; with the subtopology it makes the task's id."
        )
        state_stores: tuple[int, ...] = array(
            int32, "Number of state stores of each task, by position.", since=2, ignorable=True
        )

    latest_supported_version: int = int16("Newest version of this message that the member can write.")
    leader_version: int = int16("Newest version that the leader knew whom the member heard last; 0 = it heard none.")
    has_tasks: bool = boolean(
        "True = the member has tasks, or hasn't closed all that it had: nobody else may run them."
    )
    join_number: int = int32(
        "Rises with each rebalance that the member wants: brokers have one only if it sends something else than before."
    )
    topology_epoch: int = int32("Epoch of the topology that the member runs.", default=-1)
    topology_fingerprint: int = int64("Hash of that topology; members with the same epoch have to have the same one.")
    active_tasks: list[PreviousTasks] = array(
        PreviousTasks, "Active tasks that the member runs, or hasn't closed yet: nobody else may run them."
    )
    standby_tasks: list[PreviousTasks] = array(
        PreviousTasks, "Standby tasks that it has; before v3 also tasks whose state it has on disk only."
    )
    warmup_tasks: list[TaskIds] = array(TaskIds, "Warm-up tasks that it has.", since=3, ignorable=True)
    task_offsets: list[TaskOffset] = array(
        TaskOffset, "How far each task's state on its disk has been restored.", since=3, ignorable=True
    )
    task_end_offsets: list[TaskOffset] = array(
        TaskOffset, "Ends of each task's changelogs, to compute lag.", since=3, ignorable=True
    )
    process_id: str = string("Same for all members in one process, which share state.", since=3, ignorable=True)
    rack_id: str | None = string("Rack the member is in; null = none.", since=3, nullable=True, ignorable=True)
    client_tags: list[KeyValue] = array(
        KeyValue, "Tags that spread standbys over racks or zones.", since=3, ignorable=True
    )
    user_endpoint: Endpoint | None = struct(
        Endpoint,
        "Where the application answers interactive queries; null = none.",
        since=3,
        nullable=True,
        ignorable=True,
    )
    topology: StreamsGroupHeartbeatRequest.Topology | None = struct(
        StreamsGroupHeartbeatRequest.Topology,
        "The application's topology, as in StreamsGroupHeartbeat.",
        since=3,
        nullable=True,
        ignorable=True,
    )
    shutdown_application: bool = boolean("True = make every member of the group shut down.")
