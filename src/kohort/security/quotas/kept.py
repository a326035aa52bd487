"""What is kept of each client, for as long as it matters: names come from outside, so there may be very many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar


class _Idle(Protocol):
    def idle(self, now: int) -> bool:
        """Whether it is as one that is new."""
        ...


K = TypeVar("K")
V = TypeVar("V", bound=_Idle)

MOST: Final = 10_000
"""Clients that something is kept of, some 5 MB. Kafka keeps all that came within an hour."""


class Kept(Generic[K, V]):
    """Things by client, in the order they were last used.

    A new one pushes out those that are idle, which changes nothing, and beyond `MOST` the least used. Both stand in
    front, so this takes O(1) for each that came.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: K, now: int, make: Callable[[], V]) -> V:
        """What is kept of a client; made if there is nothing."""
        kept = self._kept
        found = kept.get(key)
        if found is not None:
            kept.move_to_end(key)
            return found
        while kept and (len(kept) >= MOST or next(iter(kept.values())).idle(now)):
            kept.popitem(last=False)
        found = kept[key] = make()
        return found
