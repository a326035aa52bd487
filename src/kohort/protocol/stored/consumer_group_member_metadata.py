"""Records of type 5 in `__consumer_offsets`: consumer group member metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, bytes_, int32, string, struct


class ConsumerGroupMemberMetadataKey(Data, key=5, versions="0"):
    """Key: what one member of a consumer group said about itself."""

    group_id: str = string("Id of the consumer group.")
    member_id: str = string("Member of the group that this record is about.")


class ConsumerGroupMemberMetadataValue(Data, key=5, versions="0", flexible=0):
    """Value: identity, subscription and settings of one member of a consumer group."""

    class ClassicMemberMetadata(Struct):
        """What a member on the classic protocol brought along when it joined."""

        class SupportedProtocol(Struct):
            """One assignor that the member supports."""

            name: str = string("Name of the assignor, e.g. range or cooperative-sticky.")
            metadata: bytes = bytes_("Subscription for this assignor: an encoded ConsumerProtocolSubscription.")

        session_timeout_ms: int = int32("Silence after which the classic member counts as gone, in ms.")
        supported_protocols: list[SupportedProtocol] = array(
            SupportedProtocol, "Assignors the member offered on joining, its favourite first."
        )

    instance_id: str | None = string("Name of a static member; null = a dynamic member.", nullable=True, default="")
    rack_id: str | None = string("Rack where the member runs; null when it told none.", nullable=True, default="")
    client_id: str = string("The client.id that the member sends in its requests.")
    client_host: str = string("Address from which the member connects.")
    subscribed_topic_names: tuple[str, ...] = array(string, "Topics the member subscribed to by name.")
    subscribed_topic_regex: str | None = string(
        "Pattern (RE2) for topic names to subscribe to; null or empty = no pattern.", nullable=True, default=""
    )
    rebalance_timeout_ms: int = int32("Time the member has to give up revoked partitions, in ms.", default=-1)
    server_assignor: str | None = string(
        "Assignor on the broker that the member asks for; null = no preference.", nullable=True, default=""
    )
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata,
        "Facts about a member that speaks the classic protocol; null = it does not.",
        nullable=True,
        default=ClassicMemberMetadata(),
        tag=0,
    )
