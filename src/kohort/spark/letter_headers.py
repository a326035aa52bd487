"""The headers of dead letters, by Kafka Streams' names (KIP-1034)."""

from __future__ import annotations

from typing import Any, Final

PREFIX: Final = "__streams.errors."
"""What their names begin with."""


def reason_header(reason: str) -> dict[str, Any]:
    """Says why a record, or a row, became a dead letter."""
    return _header("message", reason)


def letter_headers(reason: str, topic: str, partition: int, offset: int) -> list[dict[str, Any]]:
    """Say why a record became a dead letter, and where it is."""
    return [
        reason_header(reason),
        _header("topic", topic),
        _header("partition", str(partition)),
        _header("offset", str(offset)),
    ]


def _header(name: str, value: str) -> dict[str, Any]:
    return {"key": f"{PREFIX}{name}", "value": value.encode()}
