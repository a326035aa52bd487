"""What goes wrong with local state."""

from __future__ import annotations

__all__ = ["StateDirectoryError", "StateError", "StoreClosedError", "StoreCorruptError"]


class StateError(Exception):
    """Something is wrong with the local state. The changelogs have all of it: it can be rebuilt."""


class StateDirectoryError(StateError):
    """The state directory can't be used: another process has it, or it can't be written. Says what to do."""


class StoreClosedError(StateError):
    """The store is closed: its task has gone, or the application ends."""


class StoreCorruptError(StateError):
    """The store's files can't be read. When it is cleared, or opened again, it is empty, and restored anew."""
