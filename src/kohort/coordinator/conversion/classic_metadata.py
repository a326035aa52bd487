"""What a consumer group keeps of a member that uses the classic protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.conversion.embedded_protocol import Subscription
from kohort.protocol.stored.consumer_group_member_metadata import ConsumerGroupMemberMetadataValue

ClassicMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata


def classic_metadata(session_timeout_ms: int, protocols: Mapping[str, bytes]) -> ClassicMetadata:
    """What is kept of its JoinGroup; `protocols` are its subscriptions by assignor, in the order of its preference."""
    return ClassicMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[
            ClassicMetadata.SupportedProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()
        ],
    )


def protocols_of(metadata: ClassicMetadata) -> dict[str, bytes]:
    """Its subscriptions by assignor, in the order of its preference."""
    return {protocol.name: bytes(protocol.metadata) for protocol in metadata.supported_protocols}


def with_subscription(metadata: ConsumerMetadata, subscription: Subscription) -> ConsumerMetadata:
    """The metadata with a subscription; classic members have no regular expressions as the broker knows them."""
    return replace(
        metadata,
        topics=tuple(sorted(subscription.topics)),
        regex="",
        rack_id=subscription.rack or metadata.rack_id,
    )
