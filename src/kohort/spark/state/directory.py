"""The state directory of an application: its process id, its stores, and the lock that lets one process use it.

    {path}/{application id}/
        state.json           format version, process id
        lock                 held by the process that uses the directory
        0_3/delays/          a task's store: a RocksDB database
        global/airlines/     a global table's store

The process id stays with the files: a restarted process is known to have these stores.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, unquote

import msgspec

from kohort.spark.state.errors import StateDirectoryError, StateError
from kohort.spark.state.store import Store
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

_FORMAT: Final = 1
"""The format of the directory and its stores. Stores of another format are removed, and restored from changelogs."""

METADATA_FILE: Final = "state.json"
_LOCK: Final = "lock"
_GLOBAL: Final = "global"


class _Metadata(msgspec.Struct):
    format: int
    process_id: str


class StateDirectory:
    """The state of one application in one process.

    Any thread may call it.

    Args:
        path: the directory of the applications' state directories; made if need be.

    Attributes:
        path: the application's own directory.
        process_id: a UUID that stays the same as long as the directory does.

    Raises:
        StateDirectoryError: another process uses it, or it can't be written.
    """

    def __init__(self, path: Path | str, application_id: str) -> None:
        self.path = Path(path) / file_name(application_id)
        self._mutex = threading.Lock()
        self._open: dict[tuple[str, str], Store] = {}
        self._closed = False
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock_directory(self.path)
        except OSError as error:
            raise StateDirectoryError(
                f"the state directory {self.path} can't be used: {error.strerror}; "
                "let the user who runs this own it, or name another with state_dir"
            ) from error
        try:
            self.process_id = self._take_over()
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_store(self, task: TaskId, name: str) -> Store:
        """Opens a task's store; wipes it, and logs that, if it can't be read.

        Raises:
            StateError: it is open already, the directory is closed, or the disk is full or the like.
        """
        return self._open_store(str(task), name, task.partition)

    def open_global(self, name: str) -> Store:
        """Opens a global table's store. Raises as `open_store`."""
        return self._open_store(_GLOBAL, name, None)

    def tasks_on_disk(self) -> dict[TaskId, dict[str, int | None]]:
        """The tasks with stores here, and the position of each store in its changelog (None: it is empty).

        Stores that aren't open are opened for a moment: call it at the start, before the member joins.
        """
        with self._mutex:
            self._check_open()
            found: dict[TaskId, dict[str, int | None]] = {}
            for home in sorted(self.path.iterdir()):
                task = _task(home)
                if task is not None and (stores := {name: self._position(task, name) for name in _names(home)}):
                    found[task] = stores
            return found

    def move_stores(self, subtopologies: Mapping[str, str]) -> None:
        """Moves stores to where a changed program looks for them, which may have numbered its sub-topologies anew.

        What is there already stays, and so do stores that the program hasn't got. Call it before any is opened.

        Args:
            subtopologies: the sub-topology of each store, by the store's name.

        Raises:
            StateError: the directory is closed, or can't be written.
        """
        with self._mutex:
            self._check_open()
            for home in sorted(self.path.iterdir()):
                task = _task(home)
                for name in _names(home) if task is not None else ():
                    to = None if task is None else TaskId(subtopologies.get(name, task.subtopology), task.partition)
                    if to is not None and to != task:
                        self._move(home / file_name(name), self.path / file_name(str(to)) / file_name(name))

    def _move(self, store: Path, to: Path) -> None:
        if to.exists():
            return
        try:
            to.parent.mkdir(exist_ok=True)
            store.rename(to)
        except OSError as error:
            raise StateDirectoryError(f"store {store} can't be moved to {to}: {error.strerror}") from error
        log.info("store %s is now %s", store, to)

    def remove(self, task: TaskId) -> bool:
        """Deletes a task's stores unless one of them is open; returns whether they are deleted.

        Raises:
            StateError: the directory is closed.
        """
        with self._mutex:
            self._check_open()
            if any(owner == str(task) and not store.closed for (owner, _), store in self._open.items()):
                return False
            shutil.rmtree(self.path / file_name(str(task)), ignore_errors=True)
            return True

    def close(self) -> None:
        """Closes all stores, and releases the lock. May be called twice."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            for store in self._open.values():
                store.close()
            self._open.clear()
            os.close(self._lock)

    def _open_store(self, owner: str, name: str, partition: int | None) -> Store:
        with self._mutex:
            self._check_open()
            before = self._open.get((owner, name))
            if before is not None and not before.closed:
                raise StateError(f"store {name} of {owner} is open already")
            home = self.path / file_name(owner) / file_name(name)
            try:
                home.parent.mkdir(exist_ok=True)
            except OSError as error:
                raise StateDirectoryError(f"store {name} can't be made in {home}: {error.strerror}") from error
            store = self._open[owner, name] = Store(home, name, partition)
            return store

    def _position(self, task: TaskId, name: str) -> int | None:
        store = self._open.get((str(task), name))
        if store is not None and not store.closed:
            return store.position
        home = self.path / file_name(str(task)) / file_name(name)
        with contextlib.closing(Store(home, name, task.partition)) as briefly:
            return briefly.position

    def _check_open(self) -> None:
        if self._closed:
            raise StateError(f"the state directory {self.path} is closed")

    def _take_over(self) -> str:
        """Returns the process id; removes stores of another format."""
        metadata = self._metadata()
        if metadata is not None and metadata.format == _FORMAT:
            return metadata.process_id
        homes = [home for home in self.path.iterdir() if home.is_dir()]
        if homes:
            why = "has no readable state.json" if metadata is None else f"is of format {metadata.format}, not {_FORMAT}"
            log.warning("state directory %s %s: its stores are removed, to be restored", self.path, why)
        for home in homes:
            shutil.rmtree(home)
        process_id = str(uuid.uuid4()) if metadata is None else metadata.process_id
        fresh = self.path / f"{METADATA_FILE}.new"
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(_Metadata(_FORMAT, process_id)))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path / METADATA_FILE)
        return process_id

    def _metadata(self) -> _Metadata | None:
        try:
            metadata = msgspec.json.decode((self.path / METADATA_FILE).read_bytes(), type=_Metadata)
            uuid.UUID(metadata.process_id)
        except (FileNotFoundError, ValueError):  # msgspec's errors are ValueErrors
            return None
        return metadata


def lock_directory(home: Path) -> int:
    """Locks an application's directory for this process; returns the file that holds the lock until it is closed.

    Raises:
        StateDirectoryError: another process uses it.
        OSError: its file can't be written.
    """
    path = home / _LOCK
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, 0)
        os.write(file, b"%d\n" % os.getpid())
    except BlockingIOError:
        holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
        os.close(file)
        raise StateDirectoryError(
            f"the state directory {home} is used by another process" + (f" ({holder})" if holder else "") + "; "
            "give each instance on this machine a state_dir of its own, or end that process"
        ) from None
    except BaseException:
        os.close(file)
        raise
    return file


def file_name(name: str) -> str:
    """Quotes a name for any file system."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


def _task(home: Path) -> TaskId | None:
    try:
        return TaskId.parse(unquote(home.name)) if home.is_dir() else None
    except ValueError:
        return None


def _names(home: Path) -> list[str]:
    return sorted(unquote(each.name) for each in home.iterdir() if each.is_dir())
