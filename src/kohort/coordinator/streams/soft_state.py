"""The soft state of a streams group: what isn't in the log, and what a restart may lose."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kohort.coordinator.streams.environment import PlacementJob
from kohort.coordinator.streams.topology_description import Described
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.configured_topology import ConfiguredTopology
from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.warmups import Refined


@dataclass(frozen=True, slots=True)
class SoftState:
    """The soft state of a group. A draft replaces it; it becomes the group's when the draft's records are in the log.

    Equal ones lead to the same answers: what is left out of the comparison changes none.

    Attributes:
        configured: the topology with its topics resolved; None if that is out of date.
        fingerprint: the metadata hash of the topics then.
        refined: the refined target at `refined_epoch`: tasks that warm up elsewhere stay where they are.
        refinement_stale: something has changed that may let a task move on.
        job: the placement job under way.
        placed_for: what the target was made for; None if it isn't known.
        delayed: whether a new group waits for more members to join before its tasks are placed.
        described: how the nodes of the topology are connected; None until a member has described it.
        shutdown_by: the member that asked the whole application to shut down.
        endpoint_epoch: rises when the map of endpoints changes.
        endpoints_stale: the map has changed since the epoch rose last, which was at `endpoints_at`, in ms since 1970.
        endpoints: the map at an epoch.
        offsets: the task offsets that members reported.
        may_report: members that may still report task offsets, as their shard was loaded a short while ago.
        placement_at: when a timer places the tasks, in ms since 1970; None if there is no need.
        empty_since: when the last member left, in ms since 1970; None if it isn't known or the group has members.
    """

    configured: ConfiguredTopology | None = None
    fingerprint: int = 0
    refined: Refined | None = None
    refined_epoch: int = -1
    refinement_stale: bool = False
    job: PlacementJob | None = None
    placed_for: ConfiguredTopology | None = None
    delayed: bool = False
    described: Described | None = None
    shutdown_by: str | None = None
    endpoint_epoch: int = 0
    endpoints_stale: bool = False
    endpoints_at: int = field(default=0, compare=False)
    endpoints: tuple[int, list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]] = field(
        default=(-1, []), compare=False
    )
    offsets: TaskOffsets = field(default_factory=TaskOffsets, compare=False)
    may_report: frozenset[str] = field(default=frozenset(), compare=False)
    placement_at: int | None = field(default=None, compare=False)
    empty_since: int | None = field(default=None, compare=False)

    def without_member(self, member_id: str) -> SoftState:
        """Returns the soft state when a member is gone, with what it reported and its part of the refined target."""
        refined = self.refined
        if refined is not None and member_id in refined.tasks:
            left = {name: tasks for name, tasks in refined.tasks.items() if name != member_id}
            refined = replace(refined, tasks=left)
        return replace(
            self, refined=refined, offsets=self.offsets.forget(member_id), may_report=self.may_report - {member_id}
        )
