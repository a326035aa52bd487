"""A store: keys and values on the local disk, with a checkpoint of their position in the changelog.

The store is a copy of the changelog. Records and the checkpoint after them are written in one atomic write, so the
checkpoint is right wherever the process dies.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rocksdict import Rdict, ReadOptions, WriteBatch

from kohort.spark.state.checkpoint import EMPTY, Checkpoint
from kohort.spark.state.errors import StateError, StoreClosedError, StoreCorruptError
from kohort.spark.state.readers_writer_lock import ReadersWriterLock
from kohort.spark.state.rocksdb import (
    FLUSHED_FILES,
    INGESTED_FILES,
    StoreMemory,
    compact_from,
    default_memory,
    holds_up_writes,
    ingest_sst_file,
    open_rocksdb,
    open_sst_file,
)
from kohort.spark.state.rocksdb_errors import state_error
from kohort.spark.state.rocksdb_rows import (
    ROW_SCHEMA,
    SortedRows,
    as_binary,
    check_iteration_ended,
    iterate,
    put_rows,
    rows_to_batch,
    sorted_by_key,
)
from kohort.spark.state.row_cache import RowCache

log = logging.getLogger(__name__)

_CHECKPOINT_KEY: Final = b"\xff\xffkohort"  # no text in UTF-8 begins like this
_CORRUPT: Final = "CORRUPT"
_INGESTED: Final = "ingested.sst"
_BATCH: Final = 10_000
_PIECE: Final = 2_000
"""Rows that are put into a file while no other thread of Python runs: a millisecond or two."""
_COMPACTION_S: Final = 60.0
"""How long a write waits at most for RocksDB to compact."""


class ScannedRanges(NamedTuple):
    """The rows of several ranges.

    Attributes:
        ranges: which range each row is in, by its number.
        rest: the range, and the key in it, from which on there are more; None if these are all.
    """

    ranges: pa.Array
    keys: pa.Array
    values: pa.Array
    rest: tuple[int, bytes] | None


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
        self._rows = RowCache(self._memory.rows)
        self._mutex = threading.Lock()  # of what is found in memory or files, and written to both
        self._lock = ReadersWriterLock(lambda: StoreClosedError(f"store {name} is closed"))
        self._checkpoint = EMPTY
        self._compacted_from = FLUSHED_FILES
        self._db: Rdict | None = self._open()  # None after clearing it failed

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
        return self._lock.closed

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
        with self._reading_or_writing() as db, self._mutex:
            values, missing = self._rows.find(keys)
            if missing is None:
                return values
            if pc.all(missing).as_py():
                return _read(db, keys)
            return pc.replace_with_mask(values, missing, _read(db, keys.filter(missing)))

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        """The rows from `start` (included) to `end` (not included), in key order, of one snapshot.

        Returns:
            A table with `ROW_SCHEMA`, of at most `limit` rows.

        Raises as `get_many`.
        """
        batches = []
        left = limit
        with self._reading_or_writing() as db:
            rows = iterate(db, start, end)
            try:
                while batch := list(islice(rows, _BATCH if left is None else min(_BATCH, left))):
                    start = batch[-1][0]
                    batch = _without_checkpoint(batch)
                    batches.append(rows_to_batch(batch))
                    self._lock.check_open()  # `close` waits for this scan
                    left = None if left is None else left - len(batch)
            finally:
                del rows  # iterators keep the files open, and the traceback of an error keeps the iterator
            if left is None or left > 0:
                check_iteration_ended(db, start, end)
        return pa.Table.from_batches(batches, ROW_SCHEMA)

    def scan_ranges(
        self,
        starts: Sequence[bytes],
        ends: Sequence[bytes],
        most_bytes: int,
        neighbours_from: Sequence[bytes | None] | None = None,
        neighbours_to: Sequence[bytes | None] | None = None,
    ) -> ScannedRanges:
        """The rows of several ranges, each from its start (included) to its end (not included), in key order.

        One iterator goes through them all: a range costs a seek, and ranges in key order the least.

        Args:
            most_bytes: of keys and values together: there is at least one row, if there is any, and no more after
                these are reached.
            neighbours_from: of each range, from which key on the row before it is given, too; None for none.
                Where the rest begins, what comes before it was given.
            neighbours_to: of each range, up to which key (not included) the row after it is given, too; None for none.

        Raises as `get_many`.
        """
        numbers: list[int] = []
        rows: list[tuple[bytes, bytes]] = []
        size = 0
        rest: tuple[int, bytes] | None = None
        with self._reading_or_writing() as db:
            iterator = db.iter(ReadOptions())
            try:
                for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
                    before = None if neighbours_from is None else neighbours_from[number]
                    after = None if neighbours_to is None else neighbours_to[number]
                    _seek(iterator, start, before)
                    while iterator.valid() and ((key := iterator.key()) < end or (after is not None and key < after)):
                        if size >= most_bytes:
                            rest = number, key
                            break
                        value = iterator.value()
                        numbers.append(number)
                        rows.append((key, value))
                        size += len(key) + len(value)
                        if key >= end:
                            break
                        iterator.next()
                    iterator.status()  # says whether the next block could be read
                    if rest is not None:
                        break
                    self._lock.check_open()  # `close` waits for this
            finally:
                del iterator, db  # iterators keep the files open
        batch = rows_to_batch(rows)
        return ScannedRanges(pa.array(numbers, pa.int32()), batch.column(0), batch.column(1), rest)

    # Writing.

    def write(
        self,
        keys: pa.Array,
        values: pa.Array,
        position: int,
        partition: int | None = None,
        *,
        read_again: bool = False,
    ) -> None:
        """Writes records of the changelog, in its order, with the position after them.

        Args:
            keys: binary or text; records without a key are left out.
            values: binary or text; null deletes.
            position: the offset after the last of these records.
            partition: of the changelog, for a global table's store.
            read_again: whether these keys are likely to be read soon: then they are kept in memory, too. Else what is
                kept there is forgotten, as a store that is restored or follows another has nothing to read.

        Raises:
            StoreClosedError, StoreCorruptError: as `get_many`.
            StateError: the disk is full, or the like.
            ValueError: neither the call nor the store has a partition.
        """
        checkpoint = self._checkpoint_after(position, partition)
        batch = WriteBatch(raw_mode=True)
        rows = sorted_by_key(as_binary(keys), as_binary(values))
        put_rows(batch, rows)
        self._write(batch, checkpoint, rows, keep=read_again)

    def ingest(self, rows: SortedRows, position: int, partition: int | None = None) -> None:
        """The same as `write` for very many records, in half the processor time: they go into a file of their own.

        The file has the checkpoint, too, and is taken in as a whole or not at all. Other threads of Python go on while
        rows are put into it, but for a millisecond or two at a time; finishing the file holds them up, some 2 ms for
        each MiB, and so do taking it in and the first of several ingests or writes, some 10 ms each. Raises as `write`;
        `StoreClosedError` also if it is closed meanwhile.
        """
        checkpoint = self._checkpoint_after(position, partition)
        before, after = rows.split(_CHECKPOINT_KEY)
        own = SortedRows(pa.array([_CHECKPOINT_KEY]), pa.array([checkpoint.encode()]))
        path = self.path / _INGESTED
        with self._reading_or_writing() as db:
            try:
                self._compact_from(db, INGESTED_FILES)
                self._wait_for_compaction(db)  # RocksDB itself takes in files without end
                path.unlink(missing_ok=True)
                file = open_sst_file(path, self._memory)
                for part in (before, own, after):
                    for start in range(0, len(part.keys), _PIECE):
                        self._lock.check_open()  # `close` waits for this
                        put_rows(file, part.slice(start, min(start + _PIECE, len(part.keys))))
                file.finish()
                with self._mutex:
                    self._rows.clear()
                    ingest_sst_file(db, path)
                    self._checkpoint = checkpoint
            finally:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)

    def _checkpoint_after(self, position: int, partition: int | None) -> Checkpoint:
        of = self.partition if partition is None else partition
        if of is None:
            raise ValueError(f"store {self.name} is a copy of several partitions: say which one this is of")
        return self._checkpoint.at(of, position)

    def clear(self, topic_id: str | None = None) -> None:
        """Deletes everything, and sets the topic's id if given. Raises as `write`."""
        with self._lock.exclusive():
            self._close_files()
            shutil.rmtree(self.path, ignore_errors=True)
            self._checkpoint = EMPTY
            self._rows.clear()
            self._db = self._open()
        if topic_id is not None:
            self.set_topic_id(topic_id)

    def set_topic_id(self, topic_id: str) -> None:
        """Sets the id of the changelog's topic. Raises as `write`."""
        if topic_id != self._checkpoint.topic_id:
            self._write(WriteBatch(raw_mode=True), self._checkpoint.of_topic(topic_id), None)

    def close(self) -> None:
        """Closes it once the calls that go on are done. May be called twice."""
        if self._lock.close():
            self._rows.clear()
            self._close_files()

    def _write(self, batch: WriteBatch, checkpoint: Checkpoint, rows: SortedRows | None, *, keep: bool = False) -> None:
        """Writes a batch, which has these rows, with the checkpoint."""
        batch.put(_CHECKPOINT_KEY, checkpoint.encode())  # last, so that no record replaces it
        with self._reading_or_writing() as db:
            self._compact_from(db, FLUSHED_FILES)
            self._wait_for_compaction(db)
            with self._mutex:
                if rows is not None and not keep:
                    self._rows.clear()
                db.write(batch)
                self._checkpoint = checkpoint
                if rows is not None and keep:
                    self._keep(rows)

    def _keep(self, rows: SortedRows) -> None:
        """Keeps rows that were written in memory, or none at all, so that none that is found there is old."""
        try:
            for part in rows.split(_CHECKPOINT_KEY):
                self._rows.put(part)
        except BaseException:
            self._rows.clear()
            raise

    def _compact_from(self, db: Rdict, files: int) -> None:
        """Has RocksDB compact once there are so many files on level 0."""
        if files != self._compacted_from:
            compact_from(db, files)
            self._compacted_from = files

    def _wait_for_compaction(self, db: Rdict) -> None:
        """Waits while RocksDB would hold up a write, which would hold up all threads of Python: it keeps the GIL."""
        give_up_at = time.monotonic() + _COMPACTION_S
        while holds_up_writes(db) and time.monotonic() < give_up_at:
            self._lock.check_open()  # `close` waits for this
            time.sleep(0.01)

    # Files and their errors.

    @contextlib.contextmanager
    def _reading_or_writing(self) -> Iterator[Rdict]:
        """Keeps the files open, and makes RocksDB's errors errors of local state."""
        with self._lock.shared():
            if self._db is None:
                raise StateError(f"{self._described} couldn't be opened again when it was cleared; clear it once more")
            try:
                yield self._db
            except BaseException as error:
                found = self._state_error(error)
                if found is None or found is error:
                    raise
                raise found from error

    def _open(self) -> Rdict:
        """Opens the files; wipes them first if they can't be read."""
        try:
            if (self.path / _CORRUPT).exists():
                self._wipe("its files couldn't be read")
            elif self.path.exists() and not self.path.is_dir():
                self._wipe("it isn't a directory")
            try:
                return self._open_once()
            except BaseException as error:
                if not isinstance(state_error(error, self._described), StoreCorruptError):
                    raise
                self._wipe(str(error))
            return self._open_once()
        except BaseException as error:
            if (found := state_error(error, self._described)) is None:
                raise
            raise found from error

    def _open_once(self) -> Rdict:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / _INGESTED).unlink(missing_ok=True)  # of a process that has died
        db = open_rocksdb(self.path, self._memory)
        self._compacted_from = FLUSHED_FILES
        try:
            self._checkpoint = self._read_checkpoint(db)
        except BaseException:
            with contextlib.suppress(Exception):
                db.close()
            raise
        return db

    def _close_files(self) -> None:
        db, self._db = self._db, None  # if closing fails, the last reference closes the files
        if db is None:
            return
        try:
            db.close()
        except BaseException as error:
            if (found := self._state_error(error)) is None:
                raise
            log.warning("%s", found)
        db = None

    def _read_checkpoint(self, db: Rdict) -> Checkpoint:
        stored = db.get(_CHECKPOINT_KEY)
        if stored is not None:
            return Checkpoint.decode(stored, self.partition)
        if next(iterate(db, None, None), None) is not None:
            raise StoreCorruptError("it has no checkpoint")
        return EMPTY

    def _wipe(self, why: str) -> None:
        log.warning("store %s in %s is wiped, to be restored from its changelog: %s", self.name, self.path, why)
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)

    def _state_error(self, error: BaseException) -> StateError | None:
        """As `state_error`; a store that is corrupt is wiped when it is opened again."""
        found = state_error(error, self._described)
        if isinstance(found, StoreCorruptError):
            with contextlib.suppress(OSError):
                (self.path / _CORRUPT).touch()
        return found

    @property
    def _described(self) -> str:
        return f"store {self.name} in {self.path}"


def _read(db: Rdict, keys: pa.Array) -> pa.Array:
    """The values of keys in the files, in their order."""
    if keys.null_count:
        keys = keys.fill_null(_CHECKPOINT_KEY)
    order = pc.sort_indices(keys)  # in key order, each block is read once
    sorted_keys = keys.take(order).to_pylist()
    found: Any = db.get(sorted_keys)
    if sorted_keys and sorted_keys[-1] >= _CHECKPOINT_KEY:
        found = [None if key == _CHECKPOINT_KEY else value for key, value in zip(sorted_keys, found, strict=True)]
    original = np.empty(len(order), np.int64)
    original[order.to_numpy()] = np.arange(len(order))
    return pa.array(found, pa.binary()).take(pa.array(original))


def _seek(iterator: Any, start: bytes, least: bytes | None) -> None:
    """Goes to the row before a start, if its key is `least` or a greater one; else to the first one from there on."""
    if least is not None and least < start:
        iterator.seek_for_prev(start)
        if iterator.valid() and iterator.key() == start:
            iterator.prev()
        iterator.status()
        if iterator.valid() and iterator.key() >= least:
            return
    iterator.seek(start)


def _without_checkpoint(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    if rows[0][0] <= _CHECKPOINT_KEY <= rows[-1][0]:
        return [row for row in rows if row[0] != _CHECKPOINT_KEY]
    return rows
