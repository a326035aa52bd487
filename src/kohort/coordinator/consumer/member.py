"""The metadata of a member of a consumer group."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH
from kohort.coordinator.step import Client
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.stored.consumer_group_member_metadata import ConsumerGroupMemberMetadataValue


@dataclass(frozen=True, slots=True)
class ConsumerMetadata:
    """A member's metadata, from its heartbeats.

    Attributes:
        instance_id: instance id of a static member; None for a dynamic one.
        rack_id: its rack; None if it didn't send one.
        client_host: the address of its latest heartbeat.
        topics: names of the topics that it subscribes to, sorted.
        regex: RE2 pattern of the topics that it subscribes to; empty if it has none (None in records of other servers).
        rebalance_timeout_ms: how long it may take to revoke partitions; -1 if it never sent one.
        assignor: the assignor that it asks for; None if it doesn't.
        classic: what it brought along, if it uses the classic protocol; else None.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = None

    def merged(self, request: ConsumerGroupHeartbeatRequest, client: Client) -> ConsumerMetadata:
        """Returns the metadata after a heartbeat: what that leaves out stays.

        Only a member that joins tells its whole subscription: what it leaves out it no longer has, if it was known.
        """
        names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
        if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
            names, regex = names or (), regex or ""
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client.client_id,
            client_host=client.host,
            topics=self.topics if names is None else tuple(sorted(set(names))),
            regex=self.regex if regex is None else regex,
            rebalance_timeout_ms=(
                self.rebalance_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms
            ),
            assignor=self.assignor if request.server_assignor is None else request.server_assignor,
            classic=None,
        )
