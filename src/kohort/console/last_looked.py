"""What is kept of groups, one after the other, in bounded memory: of those that were looked at last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["LastLooked"]

T = TypeVar("T")


class LastLooked(Generic[T]):
    """Groups by name, each with what is kept of it.

    Args:
        new: makes what is kept of a group that wasn't looked at yet.
        most: groups that are kept.
    """

    def __init__(self, new: Callable[[], T], most: int) -> None:
        self._new = new
        self._most = most
        self._kept: dict[str, T] = {}  # in the order in which the groups were looked at last

    def looked(self, group_ids: Iterable[str]) -> dict[str, T]:
        """What is kept of groups that are looked at; where there are too many, those that come first are forgotten.

        Only at its end, or a look at more groups than are kept would forget each before its turn.
        """
        found: dict[str, T] = {}
        for group_id in group_ids:
            kept = self._kept.pop(group_id) if group_id in self._kept else self._new()
            found[group_id] = self._kept[group_id] = kept
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return found

    def of(self, group_id: str) -> T:
        """What is kept of a group; as good as new if it wasn't looked at, or is forgotten."""
        return self._kept[group_id] if group_id in self._kept else self._new()
