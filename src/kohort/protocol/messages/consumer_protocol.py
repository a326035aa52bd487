"""The consumer protocol: subscriptions and assignments inside JoinGroup and SyncGroup of classic groups."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, bytes_, int32, string


class ConsumerProtocolSubscription(Data, versions="0-3"):
    """A classic consumer's subscription, as bytes in JoinGroup; newer versions only add.

    - v1: OwnedPartitions, so that assignors can keep what members have
    - v2: GenerationId, to spot stale claims in OwnedPartitions
    - v3: RackId, for assignment by rack
    """

    class OwnedPartition(Struct):
        """Partitions of one topic that the member holds."""

        topic: str = string("Name of the topic that the partitions belong to.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions held in this topic.")

    topics: tuple[str, ...] = array(string, "Names of the topics to read.")
    user_data: bytes | None = bytes_(
        "Opaque bytes from this member's assignor to the leader's; null = none.", nullable=True
    )
    owned_partitions: list[OwnedPartition] = array(
        OwnedPartition,
        "Partitions the member holds from before, for sticky and cooperative assignors.",
        since=1,
        ignorable=True,
    )
    generation_id: int = int32(
        "Generation in which OwnedPartitions was true; -1 = unknown.", since=2, default=-1, ignorable=True
    )
    rack_id: str | None = string(
        "Rack where the consumer runs, to prefer near replicas; null when not told.",
        since=3,
        nullable=True,
        ignorable=True,
    )


class ConsumerProtocolAssignment(Data, versions="0-3"):
    """What a classic consumer gets from its group's leader, as bytes in SyncGroup; newer versions only add.

    - v1: same layout; keeps step with the subscription
    - v2: same layout; keeps step with the subscription
    - v3: same layout; keeps step with the subscription
    """

    class AssignedPartition(Struct):
        """Partitions of one topic for this consumer."""

        topic: str = string("Name of the topic to read.")
        partitions: tuple[int, ...] = array(int32, "Numbers of the partitions to read in this topic.")

    assigned_partitions: list[AssignedPartition] = array(
        AssignedPartition, "Everything the consumer shall read, by topic."
    )
    user_data: bytes | None = bytes_(
        "Opaque bytes from the assignor on the leader to the one on this member; null = none.", nullable=True
    )
