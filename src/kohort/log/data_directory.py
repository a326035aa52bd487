"""A data directory: partitions' directories by name, and Kafka's files about all of them.

`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint` and `cleaner-offset-checkpoint` say how far each log
is flushed, deleted and compacted; `.kafka_cleanshutdown` that nothing needs to be recovered; `meta.properties` whose
directory it is; `partition.metadata` in each partition's directory which topic id that belongs to.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.checkpoints import parse_offsets, render_offsets
from kohort.log.config import LogConfig
from kohort.log.files import METADATA, write_atomically
from kohort.log.log import Log
from kohort.protocol.errors import KafkaError

__all__ = ["DataDirectory", "DirectoryInUseError", "PartitionName", "read_topic_id", "uuid_text", "write_topic_id"]

_log: Final = logging.getLogger("kohort.log")

_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_LOG_STARTS: Final = "log-start-offset-checkpoint"
_CLEANED: Final = "cleaner-offset-checkpoint"
_CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_PROPERTIES: Final = "meta.properties"
_LOCK: Final = ".lock"
_DELETE: Final = "-delete"


class DirectoryInUseError(OSError):
    """Another server has the data directory."""


_held: Final[set[tuple[int, int]]] = set()
"""The locks that this process has, by device and inode: Kafka's is the process's, so it doesn't keep ourselves out."""


class PartitionName(NamedTuple):
    """A topic and the number of a partition of it."""

    topic: str
    partition: int

    @classmethod
    def parse(cls, name: str) -> PartitionName | None:
        """What a directory's name says; None if it isn't a partition's."""
        topic, dash, number = name.rpartition("-")
        return cls(topic, int(number)) if dash and topic and number.isascii() and number.isdigit() else None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class DataDirectory:
    """The directory that holds a server's logs. It is locked, with Kafka's own lock, until it is closed.

    Attributes:
        path: where it is.
        clean: whether it was closed cleanly. The sign of that is gone once it is opened, so that a crash shows.
    """

    def __init__(self, path: Path) -> None:
        """Open a data directory, creating it if it isn't there, and remove what was being deleted.

        Raises:
            DirectoryInUseError: another server has it, in this process or another.
            OSError: it can't be used.
        """
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        self._changes = threading.Lock()
        marker = path / _CLEAN_SHUTDOWN
        try:
            self.clean = marker.exists()
            marker.unlink(missing_ok=True)
            self._checkpoints = {file: self._read(file) for file in (_RECOVERY_POINTS, _LOG_STARTS, _CLEANED)}
        except OSError:
            self._unlock()
            raise
        for doomed in path.glob(f"*{_DELETE}"):
            shutil.rmtree(doomed, ignore_errors=True)

    def partitions(self) -> list[PartitionName]:
        """The partitions that have a directory here."""
        with os.scandir(self.path) as entries:
            named = [(PartitionName.parse(entry.name), entry) for entry in entries]
            return [name for name, entry in named if name is not None and entry.is_dir()]

    def open_log(self, name: PartitionName, config: LogConfig, *, now: int, durable: bool = False) -> Log:
        """The log of a partition, opened with what the checkpoints say of it; created if it isn't there.

        It may run in several threads at a time, for different partitions that are there.
        """
        directory = self.path / str(name)
        if not directory.exists() and any(name in offsets for offsets in self._checkpoints.values()):
            self._forget_deleted()
        recovery_point, log_start, cleaned = (offsets.get(name, 0) for offsets in self._checkpoints.values())
        return Log.open(
            directory, config, now=now, clean=self.clean, recovery_point=recovery_point, log_start_offset=log_start,
            cleaned_offset=cleaned, durable=durable,
        )  # fmt: skip

    def recovery_point(self, name: PartitionName) -> int:
        """Up to where a partition was on the disk for sure when that was noted last; 0 if it never was."""
        return self._checkpoints[_RECOVERY_POINTS].get(name, 0)

    def checkpoint(self, logs: Mapping[PartitionName, Log]) -> None:
        """Write down how far each log is flushed, deleted and compacted; offline ones keep what they had.

        It may run in any thread; `logs` must not change meanwhile.

        Raises:
            OSError: it can't be written.
        """
        with self._changes:
            for name, log in logs.items():
                if log.offline is None:
                    self._note(name, log)
            for offsets in self._checkpoints.values():
                for gone in [name for name in offsets if name not in logs]:
                    del offsets[gone]
            self._write()

    def close(self, logs: Mapping[PartitionName, Log]) -> None:
        """Close all logs and unlock the directory; if all went well, the next server needs to recover nothing."""
        # A partition that nobody has opened since a crash still needs it.
        clean = self.clean or all(name in logs for name in self.partitions())
        for name, log in logs.items():
            if log.offline is not None:
                clean = False  # and it keeps what was known of it
                log.close()
                continue
            try:
                log.close()
            except KafkaError as error:  # the log has told why
                clean = False
                _log.warning("%s: not closed cleanly: %s", name, error)
            else:
                self._note(name, log)
        try:
            self._write()
            if clean:
                write_atomically(self.path / _CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":-1}')
        finally:
            self._unlock()

    def _take_lock(self) -> None:
        file = self.path / _LOCK
        reason = "another server uses this data directory: stop it, or give this one a directory of its own"
        # Looked at before it is opened: closing a second descriptor would unlock it.
        if file.exists() and _identity(file.stat()) in _held:
            raise DirectoryInUseError(errno.EAGAIN, reason, str(self.path))
        self._lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise DirectoryInUseError(error.errno, reason, str(self.path)) from None
        _held.add(_identity(os.fstat(self._lock)))

    def _unlock(self) -> None:
        _held.discard(_identity(os.fstat(self._lock)))
        os.close(self._lock)

    def properties(self) -> dict[str, str] | None:
        """What `meta.properties` says: Kafka's "version", "cluster.id", "node.id", "directory.id"; None without it."""
        try:
            lines = (self.path / _PROPERTIES).read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {key.strip(): value.strip().replace("\\", "") for key, value in pairs}

    def write_properties(self, properties: Mapping[str, str]) -> None:
        """Write `meta.properties`.

        Raises:
            OSError: it can't be written.
        """
        lines = (f"{key}={value}\n" for key, value in properties.items())
        write_atomically(self.path / _PROPERTIES, "".join(lines).encode())

    def _forget_deleted(self) -> None:
        """Of partitions that were deleted nothing must be said that others of their names could take for theirs."""
        with self._changes:
            for offsets in self._checkpoints.values():
                for gone in [name for name in offsets if not (self.path / str(name)).exists()]:
                    del offsets[gone]
            try:
                self._write()
            except OSError as error:
                _log.warning("%s: the checkpoints can't be written: %s; the next time will do", self.path, error)

    def _note(self, name: PartitionName, log: Log) -> None:
        offsets = log.flushed_offset, log.log_start_offset, log.cleaned_offset
        for checkpoint, offset in zip(self._checkpoints.values(), offsets, strict=True):
            checkpoint[name] = offset

    def _write(self) -> None:
        for file, offsets in self._checkpoints.items():
            write_atomically(self.path / file, render_offsets(sorted(item for item in offsets.items() if item[1])))

    def _read(self, file: str) -> dict[PartitionName, int]:
        try:
            offsets = parse_offsets((self.path / file).read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            _log.warning("%s: passed over, as it makes no sense: %s", self.path / file, error)
            return {}
        return {PartitionName(*name): offset for name, offset in offsets.items()}


def write_topic_id(directory: Path, topic_id: uuid.UUID) -> None:
    """Write a partition's `partition.metadata`.

    Raises:
        OSError: it can't be written.
    """
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    write_atomically(directory / METADATA, text.encode(), sync=False)


def read_topic_id(directory: Path) -> uuid.UUID | None:
    """The topic id that a partition's directory was made for; None if nothing legible says so."""
    try:
        text = (directory / METADATA).read_text()
        _, _, value = text.partition("topic_id:")
        return uuid.UUID(bytes=base64.urlsafe_b64decode(value.strip() + "=="))
    except (OSError, ValueError):
        return None


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def uuid_text(value: uuid.UUID) -> str:
    """As Kafka writes them: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
