"""A store: keys and values on the local disk, and how far into their changelog they stand.

The changelog is the truth, the store a copy of it that can be asked. Both change together: what is written is there
with the position after it, or not at all, wherever the process dies.
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
    PAGE_SCHEMA,
    as_binary,
    check_that_it_ended,
    in_key_order,
    page_of,
    rows_between,
)

__all__ = ["Store"]

log = logging.getLogger(__name__)

_STANDING_KEY: Final = b"\xff\xffkohort"  # no text in UTF-8 begins so
_CORRUPT: Final = "CORRUPT"
_PAGE: Final = 10_000
_FORMAT: Final = 1

_OUTSIDE: Final = ("No space left", "Permission denied", "Too many open files", "lock hold", "No locks available",
                   "Cannot allocate memory", "Read-only file system")  # fmt: skip
"""What RocksDB says when the trouble isn't in the files."""


class _Standing(msgspec.Struct, frozen=True):
    """What a store knows of itself: a record in it."""

    format: int
    origin: str
    positions: dict[int, int]


_EMPTY: Final = _Standing(_FORMAT, "", {})


class Store:
    """Keys and values of a task, or of a global table, in key order (by bytes).

    Any thread may call it at any time: while another writes, or after it was closed. One thread at a time writes.
    Opening wipes what can't be read, and says so in the log.

    Args:
        path: the directory it lives in.
        name: what it's called.
        partition: the partition of its changelog; None for a global table's store, which has a position for each.
        memory: what it shares with other stores; by default all stores of the process share one.

    Raises:
        StateError: it can't be opened, for a reason that wiping it wouldn't change: the disk is full, or the like.
    """

    def __init__(self, path: Path, name: str, partition: int | None, memory: StoreMemory | None = None) -> None:
        self.path = path
        self.name = name
        self.partition = partition
        self._memory = memory or default_memory()
        self._changed = threading.Condition()
        self._users = 0
        self._alone = False  # somebody waits for the others to be done, or exchanges the files
        self._closed = False
        self._standing = _EMPTY
        self._db = self._open()

    # How far it is.

    @property
    def position(self) -> int | None:
        """The offset in the changelog of the first record that isn't in the store; None if none ever was."""
        return None if self.partition is None else self._standing.positions.get(self.partition)

    @property
    def positions(self) -> Mapping[int, int]:
        """The same by partition: of a task's store, one at most."""
        return MappingProxyType(self._standing.positions)

    @property
    def origin(self) -> str:
        """Which changelog it's a copy of: the topic's id, or "" while nobody has said."""
        return self._standing.origin

    @property
    def closed(self) -> bool:
        """Whether it is."""
        return self._closed

    # Reading.

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None if it isn't there. Raises as `get_many`."""
        with self._using():
            value: bytes | None = None if key == _STANDING_KEY else self._db.get(key)
            return value

    def get_many(self, keys: pa.Array) -> pa.Array:
        """The values of many keys, in their order; null where there is none.

        Args:
            keys: binary or text; a null has no value.

        Returns:
            A binary array of the same length.

        Raises:
            StoreClosedError: the store is closed.
            StoreCorruptError: its files can't be read.
        """
        asked = as_binary(keys)
        if asked.null_count:
            asked = asked.fill_null(_STANDING_KEY)
        order = pc.sort_indices(asked)  # in key order, each block is looked at once
        wanted = asked.take(order).to_pylist()
        with self._using():
            found: Any = self._db.get(wanted)
        if wanted and wanted[-1] >= _STANDING_KEY:
            found = [None if key == _STANDING_KEY else value for key, value in zip(wanted, found, strict=True)]
        back = np.empty(len(order), np.int64)
        back[order.to_numpy()] = np.arange(len(order))
        return pa.array(found, pa.binary()).take(pa.array(back))

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        """What lies from `start` (included) to `end` (not included), in key order, as of one moment.

        Returns:
            A table with `PAGE_SCHEMA`, of `limit` rows at most.

        Raises as `get_many`.
        """
        pages = []
        left = limit
        with self._using():
            rows = rows_between(self._db, start, end)
            try:
                while page := list(islice(rows, _PAGE if left is None else min(_PAGE, left))):
                    start = page[-1][0]
                    page = _without_standing(page)
                    pages.append(page_of(page))
                    if self._closed:  # whoever closes it waits for this
                        raise self._is_closed()
                    left = None if left is None else left - len(page)
            finally:
                del rows  # an iterator keeps the files open, and an error's traceback an iterator
            if left is None or left > 0:
                check_that_it_ended(self._db, start, end)
        return pa.Table.from_batches(pages, PAGE_SCHEMA)

    def pages(self, start: bytes | None = None, end: bytes | None = None) -> Iterator[pa.Table]:
        """The same in pages, each as of its own moment: however much there is, little of it is in memory."""
        page = self.scan(start, end, _PAGE)
        while page.num_rows:
            yield page
            if page.num_rows < _PAGE:
                return
            page = self.scan(page["key"][-1].as_py() + b"\0", end, _PAGE)

    def count(self) -> int:
        """About how many keys there are; what was overwritten lately may count twice. Raises as `get_many`."""
        with self._using():
            known = 1 if self._standing is not _EMPTY else 0
            return max(0, (self._db.property_int_value("rocksdb.estimate-num-keys") or 0) - known)

    # Writing.

    def write(self, keys: pa.Array, values: pa.Array, position: int, partition: int | None = None) -> None:
        """Take over a part of the changelog, in its order; the position moves with it.

        Args:
            keys: binary or text; records with a null key are left out.
            values: binary or text; null deletes.
            position: the offset after the last of these records.
            partition: of the changelog, for a global table's store.

        Raises:
            StoreClosedError, StoreCorruptError: as `get_many`.
            StateError: the disk is full, or the like.
            ValueError: no partition is given and the store has none of its own.
        """
        batch = WriteBatch(raw_mode=True)
        sorted_keys, sorted_values, deletes = in_key_order(as_binary(keys), as_binary(values))
        if deletes:
            for key, value in zip(sorted_keys, sorted_values, strict=True):
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
        else:
            deque(map(batch.put, sorted_keys, sorted_values), maxlen=0)
        self._write(batch, self._moved(position, partition))

    def clear(self, origin: str | None = None) -> None:
        """Forget everything, and begin as a copy of another changelog if `origin` is given. Raises as `write`."""
        with self._waiting_for_others():
            self._close_files()
            shutil.rmtree(self.path, ignore_errors=True)
            self._standing = _EMPTY
            self._db = self._open()
        if origin is not None:
            self.begin(origin)

    def begin(self, origin: str) -> None:
        """Note which changelog an empty store is a copy of. Raises as `write`."""
        if origin != self._standing.origin:
            self._write(WriteBatch(raw_mode=True), _Standing(_FORMAT, origin, dict(self._standing.positions)))

    def close(self) -> None:
        """Close it, as soon as those who use it at the moment are done. May be called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True  # long scans look at it
        with self._waiting_for_others(to_close=True):
            self._close_files()

    # Inside.

    def _moved(self, position: int, partition: int | None) -> _Standing:
        at = self.partition if partition is None else partition
        if at is None:
            raise ValueError(f"store {self.name} is a copy of several partitions: say which one this is of")
        return _Standing(_FORMAT, self._standing.origin, {**self._standing.positions, at: position})

    def _write(self, batch: WriteBatch, standing: _Standing) -> None:
        batch.put(_STANDING_KEY, msgspec.json.encode(standing))  # last, and so over whatever else had this key
        with self._using():
            self._db.write(batch)
            self._standing = standing

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """The files aren't closed meanwhile."""
        with self._changed:
            while self._alone and not self._closed:
                self._changed.wait()
            if self._closed:
                raise self._is_closed()
            self._users += 1
        try:
            yield
        except DbClosedError:
            raise self._is_closed() from None
        except StateError:
            raise
        except BaseException as error:
            if (trouble := self._trouble(error)) is None:
                raise
            raise trouble from error
        finally:
            with self._changed:
                self._users -= 1
                if not self._users:
                    self._changed.notify_all()

    @contextlib.contextmanager
    def _waiting_for_others(self, *, to_close: bool = False) -> Iterator[None]:
        """Be the only one: others wait, or are told that it's closed."""
        with self._changed:
            while self._alone:
                self._changed.wait()
            if self._closed and not to_close:
                raise self._is_closed()
            self._alone = True
            while self._users:
                self._changed.wait()
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
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
                self._raise_unless_in_the_files(error)
            self._wipe(str(error))
        try:
            return self._open_once()
        except BaseException as error:
            self._raise_unless_in_the_files(error)
            raise StateError(f"store {self.name} can't be opened in {self.path}: {error}") from error

    def _open_once(self) -> Rdict:
        self.path.mkdir(parents=True, exist_ok=True)
        db = open_rocksdb(self.path, self._memory)
        try:
            self._standing = self._read_standing(db)
        except BaseException:
            with contextlib.suppress(Exception):
                db.close()
            raise
        return db

    def _close_files(self) -> None:
        db: Rdict | None = self._db
        del self._db  # where closing fails, the files are closed with the last reference
        try:
            assert db is not None
            db.close()
        except BaseException as error:
            if (trouble := self._trouble(error)) is None:
                raise
            log.warning("%s", trouble)
        db = None

    def _read_standing(self, db: Rdict) -> _Standing:
        said = db.get(_STANDING_KEY)
        if said is None:
            if next(rows_between(db, None, None), None) is not None:
                raise StoreCorruptError("it doesn't say what it is a copy of")
            return _EMPTY
        try:
            standing = msgspec.json.decode(said, type=_Standing)
        except msgspec.MsgspecError as error:
            raise StoreCorruptError(f"what it says of itself can't be read: {error}") from error
        if standing.format != _FORMAT:
            raise StoreCorruptError(f"it is of format {standing.format}, not {_FORMAT}")
        if self.partition is not None and standing.positions.keys() - {self.partition}:
            raise StoreCorruptError(f"it is a copy of partition {min(standing.positions)}, not {self.partition}")
        return standing

    def _wipe(self, why: str) -> None:
        log.warning("store %s in %s is wiped, to be restored from its changelog: %s", self.name, self.path, why)
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)

    def _trouble(self, error: BaseException) -> StateError | None:
        """What an error of RocksDB's means; None if it isn't one."""
        if not _of_rocks(error):
            return None
        if any(said in str(error) for said in _OUTSIDE):
            return StateError(f"store {self.name} in {self.path}: {error}")
        with contextlib.suppress(OSError):
            (self.path / _CORRUPT).touch()  # so that it's wiped when it is opened again
        return StoreCorruptError(f"store {self.name} in {self.path} can't be read, and will be restored anew: {error}")

    def _raise_unless_in_the_files(self, error: BaseException) -> None:
        if not _of_rocks(error):
            raise error
        if any(said in str(error) for said in _OUTSIDE):
            raise StateError(f"store {self.name} can't be opened in {self.path}: {error}") from error

    def _is_closed(self) -> StoreClosedError:
        return StoreClosedError(f"store {self.name} is closed")


def _without_standing(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    if rows[0][0] <= _STANDING_KEY <= rows[-1][0]:
        return [row for row in rows if row[0] != _STANDING_KEY]
    return rows


def _of_rocks(error: BaseException) -> bool:
    """Whether rocksdict raised it: a plain Exception, or what its own panics become."""
    return type(error) is Exception or type(error).__name__ == "PanicException" or isinstance(error, StoreCorruptError)
