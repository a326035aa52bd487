"""Where an instance of an application answers interactive queries (KIP-1071)."""

from __future__ import annotations

from typing import NamedTuple


class Endpoint(NamedTuple):
    """Where an instance of the application answers queries."""

    host: str
    port: int
