"""Records of type 10 in `__consumer_offsets`: share group member metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import array, string


class ShareGroupMemberMetadataKey(Data, key=10, versions="0"):
    """Key: what one member of a share group said about itself."""

    group_id: str = string("Id of the share group.")
    member_id: str = string("Member of the group that this record is about.")


class ShareGroupMemberMetadataValue(Data, key=10, versions="0", flexible=0):
    """Value: identity and subscription of one member of a share group."""

    rack_id: str | None = string("Rack where the member runs; null when it told none.", nullable=True, default="")
    client_id: str = string("The client.id that the member sends in its requests.")
    client_host: str = string("Address from which the member connects.")
    subscribed_topic_names: tuple[str, ...] = array(string, "Topics the member subscribed to by name.")
