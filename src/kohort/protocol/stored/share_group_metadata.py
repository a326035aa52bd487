"""Records of type 11 in `__consumer_offsets`: share group metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import int32, int64, string


class ShareGroupMetadataKey(Data, key=11, versions="0"):
    """Key: a share group itself."""

    group_id: str = string("Id of the share group.")


class ShareGroupMetadataValue(Data, key=11, versions="0", flexible=0):
    """Value: a share group's epoch, and the topic metadata that it was computed from."""

    epoch: int = int32("Group epoch, bumped when subscriptions, members or topics change.")
    metadata_hash: int = int64("Fingerprint of the subscribed topics' metadata; 0 = none. A change means rebalance.")
