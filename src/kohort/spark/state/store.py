"""A store: keys and values on the local disk, with a checkpoint of their position in the changelog.

The store is a copy of the changelog. Records and the checkpoint after them are written in one atomic write, so the
checkpoint is right wherever the process dies.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rocksdict import DbClosedError, Rdict, WriteBatch

from kohort.spark.state.errors import StateError, StoreClosedError, StoreCorruptError
from kohort.spark.state.rocksdb import StoreMemory, default_memory, open_rocksdb
from kohort.spark.state.rocksdb_rows import (
    ROW_SCHEMA,
    as_binary,
    check_iteration_ended,
    iterate,
    rows_to_batch,
    sorted_by_key,
)

log = logging.getLogger(__name__)

_CHECKPOINT_KEY: Final = b"\xff\xffkohort"  # no text in UTF-8 begins like this
_CORRUPT: Final = "CORRUPT"
_BATCH: Final = 10_000
_FORMAT: Final = 1

_OTHER_CAUSES: Final = ("No space left", "Permission denied", "Too many open files", "lock hold", "No locks available",
                   "Cannot allocate memory", "Read-only file system")  # fmt: skip
"""RocksDB's messages for errors that aren't due to the files."""


class _Checkpoint(msgspec.Struct, frozen=True, rename={"topic_id": "origin"}):
    """A record in the store: the changelog topic that it is a copy of, and its position in each partition."""

    format: int
    topic_id: str
    positions: dict[int, int]


_EMPTY: Final = _Checkpoint(_FORMAT, "", {})


class Store:
    """Keys and values of a task, or of a global table, in key order (by bytes).

    Any thread may call it at any time, while another writes or after it was closed; only one thread writes at a time.
    If it can't be read when it is opened, it is wiped, which is logged.

    Args:
        partition: the partition of its changelog; None for a global table's store, which has a position for each.
        memory: the memory that it shares with other stores; by default that of all stores of the process.

    Raises:
        StateError: it can't be opened, and wiping it wouldn't help: the disk is full, or the like.
    """

    def __init__(self, path: Path, name: str, partition: int | None, memory: StoreMemory | None = None) -> None:
        self.path = path
        self.name = name
        self.partition = partition
        self._memory = memory or default_memory()
        self._changed = threading.Condition()
        self._users = 0
        self._exclusive = False  # a thread clears or closes the store, or waits for the users' end to do so
        self._closed = False
        self._checkpoint = _EMPTY
        self._db = self._open()

    # The checkpoint.

    @property
    def position(self) -> int | None:
        """The offset after the last record of the changelog that the store has; None if it is empty."""
        return None if self.partition is None else self._checkpoint.positions.get(self.partition)

    @property
    def positions(self) -> Mapping[int, int]:
        """The position by partition; a task's store has one at most."""
        return MappingProxyType(self._checkpoint.positions)

    @property
    def topic_id(self) -> str:
        """The id of the changelog's topic, or "" if it was never set."""
        return self._checkpoint.topic_id

    @property
    def closed(self) -> bool:
        return self._closed

    # Reading.

    def get_many(self, keys: pa.Array) -> pa.Array:
        """The values of keys, in their order; null where there is none.

        Args:
            keys: binary or text; a null has no value.

        Returns:
            A binary array of the same length.

        Raises:
            StoreClosedError: the store is closed.
            StoreCorruptError: its files can't be read.
        """
        keys = as_binary(keys)
        if keys.null_count:
            keys = keys.fill_null(_CHECKPOINT_KEY)
        order = pc.sort_indices(keys)  # in key order, each block is read once
        sorted_keys = keys.take(order).to_pylist()
        with self._shared_access():
            found: Any = self._db.get(sorted_keys)
        if sorted_keys and sorted_keys[-1] >= _CHECKPOINT_KEY:
            found = [None if key == _CHECKPOINT_KEY else value for key, value in zip(sorted_keys, found, strict=True)]
        original = np.empty(len(order), np.int64)
        original[order.to_numpy()] = np.arange(len(order))
        return pa.array(found, pa.binary()).take(pa.array(original))

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        """The rows from `start` (included) to `end` (not included), in key order, of one snapshot.

        Returns:
            A table with `ROW_SCHEMA`, of at most `limit` rows.

        Raises as `get_many`.
        """
        batches = []
        left = limit
        with self._shared_access():
            rows = iterate(self._db, start, end)
            try:
                while batch := list(islice(rows, _BATCH if left is None else min(_BATCH, left))):
                    start = batch[-1][0]
                    batch = _without_checkpoint(batch)
                    batches.append(rows_to_batch(batch))
                    if self._closed:  # `close` waits for this scan
                        raise self._closed_error()
                    left = None if left is None else left - len(batch)
            finally:
                del rows  # iterators keep the files open, and the traceback of an error keeps the iterator
            if left is None or left > 0:
                check_iteration_ended(self._db, start, end)
        return pa.Table.from_batches(batches, ROW_SCHEMA)

    # Writing.

    def write(self, keys: pa.Array, values: pa.Array, position: int, partition: int | None = None) -> None:
        """Writes records of the changelog, in its order, with the position after them.

        Args:
            keys: binary or text; records without a key are left out.
            values: binary or text; null deletes.
            position: the offset after the last of these records.
            partition: of the changelog, for a global table's store.

        Raises:
            StoreClosedError, StoreCorruptError: as `get_many`.
            StateError: the disk is full, or the like.
            ValueError: neither the call nor the store has a partition.
        """
        batch = WriteBatch(raw_mode=True)
        sorted_keys, sorted_values, deletes = sorted_by_key(as_binary(keys), as_binary(values))
        if deletes:
            for key, value in zip(sorted_keys, sorted_values, strict=True):
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
        else:
            deque(map(batch.put, sorted_keys, sorted_values), maxlen=0)
        self._write(batch, self._checkpoint_at(position, partition))

    def clear(self, topic_id: str | None = None) -> None:
        """Deletes everything, and sets the topic's id if given. Raises as `write`."""
        with self._exclusive_access():
            self._close_files()
            shutil.rmtree(self.path, ignore_errors=True)
            self._checkpoint = _EMPTY
            self._db = self._open()
        if topic_id is not None:
            self.set_topic_id(topic_id)

    def set_topic_id(self, topic_id: str) -> None:
        """Sets the id of the changelog's topic. Raises as `write`."""
        if topic_id != self._checkpoint.topic_id:
            self._write(WriteBatch(raw_mode=True), _Checkpoint(_FORMAT, topic_id, dict(self._checkpoint.positions)))

    def close(self) -> None:
        """Closes it once the calls that go on are done. May be called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True  # ends long scans
        with self._exclusive_access(to_close=True):
            self._close_files()

    # Files and access.

    def _checkpoint_at(self, position: int, partition: int | None) -> _Checkpoint:
        at = self.partition if partition is None else partition
        if at is None:
            raise ValueError(f"store {self.name} is a copy of several partitions: say which one this is of")
        return _Checkpoint(_FORMAT, self._checkpoint.topic_id, {**self._checkpoint.positions, at: position})

    def _write(self, batch: WriteBatch, checkpoint: _Checkpoint) -> None:
        batch.put(_CHECKPOINT_KEY, msgspec.json.encode(checkpoint))  # last, so that no record replaces it
        with self._shared_access():
            self._db.write(batch)
            self._checkpoint = checkpoint

    @contextlib.contextmanager
    def _shared_access(self) -> Iterator[None]:
        """Keeps the files open, together with other users."""
        with self._changed:
            while self._exclusive and not self._closed:
                self._changed.wait()
            if self._closed:
                raise self._closed_error()
            self._users += 1
        try:
            yield
        except DbClosedError:
            raise self._closed_error() from None
        except StateError:
            raise
        except BaseException as error:
            if (state_error := self._state_error(error)) is None:
                raise
            raise state_error from error
        finally:
            with self._changed:
                self._users -= 1
                if not self._users:
                    self._changed.notify_all()

    @contextlib.contextmanager
    def _exclusive_access(self, *, to_close: bool = False) -> Iterator[None]:
        """Waits until there are no users; new ones wait, or get an error if it is closed."""
        with self._changed:
            while self._exclusive:
                self._changed.wait()
            if self._closed and not to_close:
                raise self._closed_error()
            self._exclusive = True
            while self._users:
                self._changed.wait()
        try:
            yield
        finally:
            with self._changed:
                self._exclusive = False
                self._changed.notify_all()

    def _open(self) -> Rdict:
        if (self.path / _CORRUPT).exists():
            self._wipe("its files couldn't be read")
        elif self.path.exists() and not self.path.is_dir():
            self._wipe("it isn't a directory")
        try:
            return self._open_once()
        except BaseException as error:
            if not isinstance(error, StoreCorruptError):
                self._raise_unless_corrupt(error)
            self._wipe(str(error))
        try:
            return self._open_once()
        except BaseException as error:
            self._raise_unless_corrupt(error)
            raise StateError(f"store {self.name} can't be opened in {self.path}: {error}") from error

    def _open_once(self) -> Rdict:
        self.path.mkdir(parents=True, exist_ok=True)
        db = open_rocksdb(self.path, self._memory)
        try:
            self._checkpoint = self._read_checkpoint(db)
        except BaseException:
            with contextlib.suppress(Exception):
                db.close()
            raise
        return db

    def _close_files(self) -> None:
        db: Rdict | None = self._db
        del self._db  # if closing fails, the last reference closes the files
        try:
            assert db is not None
            db.close()
        except BaseException as error:
            if (state_error := self._state_error(error)) is None:
                raise
            log.warning("%s", state_error)
        db = None

    def _read_checkpoint(self, db: Rdict) -> _Checkpoint:
        stored = db.get(_CHECKPOINT_KEY)
        if stored is None:
            if next(iterate(db, None, None), None) is not None:
                raise StoreCorruptError("it has no checkpoint")
            return _EMPTY
        try:
            checkpoint = msgspec.json.decode(stored, type=_Checkpoint)
        except msgspec.MsgspecError as error:
            raise StoreCorruptError(f"its checkpoint can't be read: {error}") from error
        if checkpoint.format != _FORMAT:
            raise StoreCorruptError(f"it is of format {checkpoint.format}, not {_FORMAT}")
        if self.partition is not None and checkpoint.positions.keys() - {self.partition}:
            raise StoreCorruptError(f"it is a copy of partition {min(checkpoint.positions)}, not {self.partition}")
        return checkpoint

    def _wipe(self, why: str) -> None:
        log.warning("store %s in %s is wiped, to be restored from its changelog: %s", self.name, self.path, why)
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)

    def _state_error(self, error: BaseException) -> StateError | None:
        """The StateError for an error of RocksDB; None if it is another error."""
        if not _is_rocksdb_error(error):
            return None
        if any(text in str(error) for text in _OTHER_CAUSES):
            return StateError(f"store {self.name} in {self.path}: {error}")
        with contextlib.suppress(OSError):
            (self.path / _CORRUPT).touch()  # it is wiped when it is opened again
        return StoreCorruptError(f"store {self.name} in {self.path} can't be read, and will be restored: {error}")

    def _raise_unless_corrupt(self, error: BaseException) -> None:
        if not _is_rocksdb_error(error):
            raise error
        if any(text in str(error) for text in _OTHER_CAUSES):
            raise StateError(f"store {self.name} can't be opened in {self.path}: {error}") from error

    def _closed_error(self) -> StoreClosedError:
        return StoreClosedError(f"store {self.name} is closed")


def _without_checkpoint(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    if rows[0][0] <= _CHECKPOINT_KEY <= rows[-1][0]:
        return [row for row in rows if row[0] != _CHECKPOINT_KEY]
    return rows


def _is_rocksdb_error(error: BaseException) -> bool:
    """Whether rocksdict raised it: a plain Exception, or a panic."""
    return type(error) is Exception or type(error).__name__ == "PanicException" or isinstance(error, StoreCorruptError)
