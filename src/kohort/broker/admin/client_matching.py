"""A client's match parameters, by which metrics subscriptions select clients (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from kohort.log.data_directory import uuid_text
from kohort.protocol.schema import NO_UUID

if TYPE_CHECKING:
    from kohort.broker.context import Context

__all__ = ["RESERVED_IDS", "match_parameters"]

RESERVED_IDS: Final = frozenset({NO_UUID, UUID(int=1)})
"""Client instance ids that Kafka never assigns."""


def match_parameters(client: UUID, context: Context) -> dict[str, str]:
    """The client's value of each match parameter."""
    return {
        "client_instance_id": uuid_text(client),
        "client_id": context.client_id,
        "client_software_name": context.session.software_name,
        "client_software_version": context.session.software_version,
        "client_source_address": context.session.host,
        "client_source_port": str(context.session.port),
    }
