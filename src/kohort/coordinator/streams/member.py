"""A member of a streams group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kohort.coordinator.modern.group import Member
from kohort.coordinator.modern.timeouts import MemberTimer
from kohort.coordinator.step import Client
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.streams.endpoint import Endpoint
from kohort.streams.tasks import Role, TaskId

__all__ = ["StreamsMember", "StreamsMetadata"]


@dataclass(frozen=True, slots=True)
class StreamsMetadata:
    """What a member says about itself.

    Attributes:
        instance_id: name of a static member; None for a dynamic one.
        rack_id: the rack it is in; None if it doesn't say.
        client_id: name its client gives itself.
        client_host: address it was last heard from.
        rebalance_timeout_ms: how long it may take to give up tasks; -1 if it never said.
        topology_epoch: epoch of the topology it runs; -1 if it never said.
        process_id: the process it runs in, whose disk it shares.
        endpoint: where it answers queries; None if it doesn't.
        tags: by which standbys are spread.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def merged(self, request: StreamsGroupHeartbeatRequest, client: Client) -> StreamsMetadata:
        """What it says now: what a heartbeat leaves out is as before, but a joining member's endpoint may be none."""
        endpoint = request.user_endpoint
        joining = request.member_epoch == 0
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client.client_id,
            client_host=client.host,
            rebalance_timeout_ms=(
                self.rebalance_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms
            ),
            topology_epoch=self.topology_epoch if request.topology is None else request.topology.epoch,
            process_id=self.process_id if request.process_id is None else request.process_id,
            endpoint=(
                Endpoint(endpoint.host, endpoint.port) if endpoint is not None else None if joining else self.endpoint
            ),
            tags=self.tags if request.client_tags is None else {tag.key: tag.value for tag in request.client_tags},
        )

    def asks_for_other_tasks(self, before: StreamsMetadata) -> bool:
        """Whether a static member that says this now may deserve other tasks than when it said that."""
        return (
            self.topology_epoch != before.topology_epoch
            or self.rack_id != before.rack_id
            or self.tags != before.tags
            or self.process_id != before.process_id
        )


class StreamsMember(Member[StreamsMetadata, TaskId, Role]):
    """A member, and what is only kept in memory about it.

    Attributes:
        may_report: its shard was loaded a short while ago, and if it reports task offsets it will do so soon.
        quiet: what it is answered as long as there is nothing new, at revision `quiet_at` of the group.
        timer: its timer, if it is answered so.
    """

    __slots__ = ("may_report", "quiet", "quiet_at", "timer")

    def __init__(self, member_id: str, metadata: StreamsMetadata) -> None:
        super().__init__(member_id, metadata)
        self.may_report = False
        self.quiet: HeartbeatResult | None = None
        self.quiet_at = -1
        self.timer: MemberTimer | None = None
