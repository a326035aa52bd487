"""The metadata of a member of a streams group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kohort.coordinator.step import Client
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.streams.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class StreamsMetadata:
    """A member's metadata, from its heartbeats.

    Attributes:
        instance_id: instance id of a static member; None for a dynamic one.
        rack_id: its rack; None if it didn't send one.
        client_host: the address of its latest heartbeat.
        rebalance_timeout_ms: its rebalance timeout, to revoke tasks; -1 if it never sent one.
        topology_epoch: epoch of the topology it runs; -1 if it never sent one.
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
        """Returns the metadata after a heartbeat: what that leaves out stays, but for a joining member's endpoint."""
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
        """Whether a static member with this metadata may get other tasks than with the metadata before."""
        return (
            self.topology_epoch != before.topology_epoch
            or self.rack_id != before.rack_id
            or self.tags != before.tags
            or self.process_id != before.process_id
        )
