"""By what a classic group of a streams application is known to its coordinator."""

from __future__ import annotations

from typing import Final

PROTOCOL_TYPE: Final = "stream"
"""The protocol type of the group."""

PROTOCOL_NAME: Final = "stream"
"""The one protocol that members name."""
