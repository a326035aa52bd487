"""Records of type 19 in `__consumer_offsets`: streams group member metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int32, string, struct, uint16


class Endpoint(Struct):
    """Where a Streams process answers interactive queries."""

    host: str = string("Host name or address that answers queries.")
    port: int = uint16("TCP port that answers queries.")


class KeyValue(Struct):
    """One tag of the member."""

    key: str = string("Name of the tag.")
    value: str = string("What the tag says for this member.")


class StreamsGroupMemberMetadataKey(Data, key=19, versions="0"):
    """Key: what one member of a streams group said about itself."""

    group_id: str = string("Id of the streams group.")
    member_id: str = string("Member of the group that this record is about.")


class StreamsGroupMemberMetadataValue(Data, key=19, versions="0", flexible=0):
    """Value: identity, process and settings of one member of a streams group."""

    instance_id: str | None = string("Name of a static member; null = a dynamic member.", nullable=True, default="")
    rack_id: str | None = string("Rack where the member runs; null when it told none.", nullable=True, default="")
    client_id: str = string("The client.id that the member sends in its requests.")
    client_host: str = string("Address from which the member connects.")
    rebalance_timeout_ms: int = int32("Time the member has to give up revoked tasks, in ms; -1 = not set.", default=-1)
    topology_epoch: int = int32("Epoch of the topology that the member runs.")
    process_id: str = string("Which process the member runs in; members of one process share its state.")
    user_endpoint: Endpoint | None = struct(
        Endpoint, "Where to send interactive queries; null = the member answers none.", nullable=True
    )
    client_tags: list[KeyValue] = array(KeyValue, "Tags, e.g. zone or cluster, to spread standby tasks by.")
