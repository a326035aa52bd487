"""A bound on what clients leave behind in memory: when it is exceeded, the oldest goes first."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")


class Bound(Generic[K]):
    """Sizes of things, and a bound on their sum.

    Attributes:
        limit: of the sum; one thing alone may be larger.
        total: the sum.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._sizes: dict[K, int] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._sizes)

    def put(self, key: K, size: int) -> list[K]:
        """Sets a thing's size, and makes it the newest; returns those that have to go, and forgets them."""
        self.remove(key)
        self._sizes[key] = size
        self.total += size
        return self._oldest_but(key)

    def resize(self, key: K, size: int) -> list[K]:
        """Sets a thing's size, and leaves its age; returns those that have to go, and forgets them."""
        self.total += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        return self._oldest_but(key)

    def remove(self, key: K) -> None:
        """Forgets a thing, if it is there."""
        self.total -= self._sizes.pop(key, 0)

    def _oldest_but(self, newest: K) -> list[K]:
        gone: list[K] = []
        while self.total > self.limit:
            oldest = next(iter(self._sizes))
            if oldest is newest:
                break
            self.remove(oldest)
            gone.append(oldest)
        return gone
