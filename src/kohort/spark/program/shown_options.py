"""Options of commands that messages show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.client.addresses import address_text

if TYPE_CHECKING:
    from kohort.client.config import ClientConfig


def options_to_reach(client: ClientConfig) -> list[str]:
    """Words with which a command asks the same cluster. What TLS and SASL need isn't there: it's in the user's file."""
    words = ["-b", ",".join(map(address_text, client.addresses))]
    return [*words, "--config", "client.properties"] if client.uses_tls or client.uses_sasl else words
