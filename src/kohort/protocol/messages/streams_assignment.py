"""StreamsAssignment: what the leader of a classic streams group tells a member, as bytes in SyncGroup."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.messages.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse, TaskIds
from kohort.protocol.schema import array, boolean, int8, int16, int32, int64


class StreamsAssignment(Data, versions="1-3", flexible=1):
    """The tasks of a member of a classic streams group (protocol type "stream"), from its leader; Kohort's own.

    Two bytes with the version come before it; it is the lowest that a member of the group wrote in.

    - v2: same layout; keeps step with the subscription
    - v3: warm-ups, partitions by endpoint, probing rebalances (KIP-441)
    """

    latest_supported_version: int = int16("Newest version of both messages that the leader knows.")
    common_version: int = int16("Newest version that all members know: who wrote in an older one joins again with it.")
    error_code: int = int8(
        "0 none, 1 subscription too new: join again in the latest supported version, 2 subscription unreadable."
    )
    join_again: bool = boolean(
        "True = join again as soon as all is closed that the member has, and that isn't assigned here: others wait."
    )
    topology_epoch: int = int32(
        "Epoch of the topology that the member ran when it joined; -1 = the leader doesn't say.", default=-1
    )
    topology_fingerprint: int = int64(
        "Hash of that topology: a static member that comes back with another one doesn't take these tasks."
    )
    status: list[Status] = array(Status, "Conditions the application should know about.")
    active_tasks: list[TaskIds] = array(TaskIds, "Active tasks to run.")
    standby_tasks: list[TaskIds] = array(TaskIds, "Standby tasks to run.")
    warmup_tasks: list[TaskIds] = array(TaskIds, "Warm-up tasks to run.", since=3)
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint] = array(
        StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint,
        "Which instance holds which partitions, for queries.",
        since=3,
        ignorable=True,
    )
    acceptable_recovery_lag: int = int64(
        "Most offsets a warm-up task may lag and still count as ready; -1 = the leader doesn't say.",
        since=3,
        default=-1,
        ignorable=True,
    )
    next_probing_rebalance_ms: int = int32(
        "Time until the member is to join again, to see whether warm-ups are ready, in ms; -1 = it needn't.",
        since=3,
        default=-1,
        ignorable=True,
    )
