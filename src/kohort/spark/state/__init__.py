"""State of tasks: local stores (RocksDB), the state directory, and the changelog reader that restores stores."""

from kohort.spark.state.changelog_reader import ChangelogReader, RestoreProgress
from kohort.spark.state.directory import StateDirectory
from kohort.spark.state.errors import StateDirectoryError, StateError, StoreClosedError, StoreCorruptError
from kohort.spark.state.store import ScannedRanges, Store

__all__ = [
    "ChangelogReader", "RestoreProgress", "ScannedRanges", "StateDirectory", "StateDirectoryError", "StateError",
    "Store", "StoreClosedError", "StoreCorruptError",
]  # fmt: skip
