"""Records of type 3 in `__consumer_offsets`: consumer group metadata."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import int32, int64, string


class ConsumerGroupMetadataKey(Data, key=3, versions="0"):
    """Key: a consumer group itself."""

    group_id: str = string("Id of the consumer group.")


class ConsumerGroupMetadataValue(Data, key=3, versions="0", flexible=0):
    """Value: a consumer group's epoch, and the topic metadata that it was computed from."""

    epoch: int = int32("Group epoch, bumped when subscriptions, members or topics change.")
    metadata_hash: int = int64(
        "Fingerprint of the subscribed topics' metadata; 0 = none. A change means rebalance.", tag=0
    )
