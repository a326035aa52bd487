"""An asyncio client for Kafka: consumers, producer, streams member and admin, for Kohort and Apache Kafka alike.

Nothing is imported before it is asked for: an admin client loads no numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.config import ClientConfig
    from kohort.client.consumer import Consumer
    from kohort.client.errors import ClientError
    from kohort.client.producer import Producer
    from kohort.client.share_consumer import ShareConsumer
    from kohort.client.sharing.acknowledgements import AcknowledgeType
    from kohort.client.streams_member import StreamsMember
    from kohort.client.types import GroupMetadata, OffsetAndMetadata, Record, ShareRecord, TopicPartition

__all__ = [
    "AcknowledgeType", "Admin", "ClientConfig", "ClientError", "Consumer", "GroupMetadata", "OffsetAndMetadata",
    "Producer", "Record", "ShareConsumer", "ShareRecord", "StreamsMember", "TopicPartition",
]  # fmt: skip

_HOME: Final = {
    "AcknowledgeType": "sharing.acknowledgements",
    "Admin": "admin",
    "ClientConfig": "config",
    "ClientError": "errors",
    "Consumer": "consumer",
    "GroupMetadata": "types",
    "OffsetAndMetadata": "types",
    "Producer": "producer",
    "Record": "types",
    "ShareConsumer": "share_consumer",
    "ShareRecord": "types",
    "StreamsMember": "streams_member",
    "TopicPartition": "types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
