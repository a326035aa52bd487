"""Errors of local state."""

from __future__ import annotations


class StateError(Exception):
    """The local state has an error. The changelogs have all of it, so it can be rebuilt."""


class StateDirectoryError(StateError):
    """The state directory can't be used: another process has it, or it can't be written. Says what to do."""


class StoreClosedError(StateError):
    """The store is closed: its task isn't here any more, or the application ends."""


class StoreCorruptError(StateError):
    """The store's files can't be read. Once it is cleared or opened again, it is empty, and is restored."""
