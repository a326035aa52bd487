"""What a share group has in flight of a partition, in DescribeShareGroupOffsets: a tagged field of this broker's own.

Who wants it puts the field, empty, into the request's group; then the response's partitions have it, unless nothing is
in flight. Apache Kafka has no request that tells this; its brokers and clients pass over tagged fields they don't know.
The content is JSON: a list of `InFlight` as lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["IN_FLIGHT_TAG", "InFlight", "decode_in_flight", "encode_in_flight"]

IN_FLIGHT_TAG: Final = 10_000


class InFlight(NamedTuple):
    """Neighbouring records in one state.

    Attributes:
        first_offset, last_offset: both included.
        state: "available", "acquired", "acknowledged", "archiving" or "archived".
        delivery_count: how often they were delivered.
        member_id: who has acquired them; None if nobody has.
        locked_until_ms: until when, in ms since 1970; None if nobody has.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None = None
    locked_until_ms: int | None = None


def encode_in_flight(records: Iterable[InFlight]) -> bytes:
    """The field's content."""
    return json.dumps(list(records), separators=(",", ":")).encode()


def decode_in_flight(data: bytes) -> list[InFlight]:
    """Decodes the field.

    Raises:
        ValueError: it is something else.
    """
    try:
        return [InFlight(*each) for each in json.loads(data)]
    except TypeError as error:
        raise ValueError(f"these aren't records in flight: {error}") from error
