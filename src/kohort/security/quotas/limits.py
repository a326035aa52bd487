"""Which quota is a client's, and with whom it shares it.

Quotas are set for entities: a user, a client id, or a client id of a user, each by name or as the default. The most
special one counts. Clients that a default is for each have it for themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

USER: Final = "user"
CLIENT_ID: Final = "client-id"

Entity = frozenset[tuple[str, str | None]]
"""Types with names; None is the default of a type."""

Key = tuple[str | None, str | None]
"""Those who share a quota: a user, a client id, or both; None where any counts."""


class Limit(NamedTuple):
    """A quota that holds for a client.

    Attributes:
        key: who shares it.
        bound: its value.
    """

    key: Key
    bound: float


class Limits:
    """The quotas of one kind, such as `producer_byte_rate`.

    Args:
        quotas: by entity.
    """

    def __init__(self, quotas: Mapping[Entity, float]) -> None:
        self._quotas = dict(quotas)
        self._found: dict[Key, Limit | None] = {}

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def of(self, user: str, client_id: str) -> Limit | None:
        """The quota of a client; None if it has none. Eight look-ups, for the first of its requests."""
        if len(client_id) > _LONG:
            return self._find(user, client_id)
        try:
            return self._found[user, client_id]
        except KeyError:
            if len(self._found) >= _CACHED:
                self._found.clear()
            found = self._found[user, client_id] = self._find(user, client_id)
            return found

    def _find(self, user: str, client_id: str) -> Limit | None:
        shown = client_id if len(client_id) <= _LONG else hashlib.sha256(client_id.encode()).hexdigest()
        both, of_user, of_client = (user, shown), (user, None), (None, shown)
        # In Kafka's order.
        for entity, key in (
            ({(USER, user), (CLIENT_ID, client_id)}, both),
            ({(USER, user), (CLIENT_ID, None)}, both),
            ({(USER, user)}, of_user),
            ({(USER, None), (CLIENT_ID, client_id)}, both),
            ({(USER, None), (CLIENT_ID, None)}, both),
            ({(USER, None)}, of_user),
            ({(CLIENT_ID, client_id)}, of_client),
            ({(CLIENT_ID, None)}, of_client),
        ):
            if not client_id and key is not of_user:
                continue  # not even defaults are for clients without an id
            bound = self._quotas.get(frozenset(entity))
            if bound is not None:
                return Limit(key, bound)
        return None


_CACHED: Final = 10_000
"""Clients whose quotas are remembered: names come from outside."""

_LONG: Final = 256
"""Characters of a client id from which on it isn't kept itself."""
