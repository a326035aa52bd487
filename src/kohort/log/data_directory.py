"""A data directory: a directory for each partition, and Kafka's files about all of them.

`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint` and `cleaner-offset-checkpoint` have the offset that
each log is flushed, deleted and compacted up to. `.kafka_cleanshutdown` marks a clean shutdown, so that nothing needs
recovery. `meta.properties` has the cluster and node ids, and each partition's `partition.metadata` its topic id.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.checkpoints import parse_offsets, render_offsets
from kohort.log.config import LogConfig
from kohort.log.damage import Report, tell
from kohort.log.files import METADATA, make_directory, write_atomically
from kohort.log.log import Log
from kohort.protocol.errors import KafkaError

_log: Final = logging.getLogger("kohort.log")

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_PROPERTIES: Final = "meta.properties"
_LOCK: Final = ".lock"
DELETE: Final = "-delete"


class DirectoryInUseError(OSError):
    """Another server uses the data directory."""


_locked: Final[set[tuple[int, int]]] = set()
"""Locks held by this process, by device and inode: POSIX locks don't exclude the process that holds them."""


class PartitionName(NamedTuple):
    """A topic and the number of a partition of it."""

    topic: str
    partition: int

    @classmethod
    def parse(cls, name: str) -> PartitionName | None:
        """Parses a directory's name; None if it isn't a partition's."""
        topic, dash, number = name.rpartition("-")
        return cls(topic, int(number)) if dash and topic and number.isascii() and number.isdigit() else None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class DataDirectory:
    """The directory of a server's logs. It holds Kafka's lock file until it is closed.

    Attributes:
        clean: whether the last shutdown was clean. Opening removes the marker, so that a crash is detected.
    """

    def __init__(self, path: Path) -> None:
        """Opens or creates a data directory, and finishes deletions.

        Raises:
            DirectoryInUseError: another server uses it, in this process or another.
            OSError: it can't be used.
        """
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _take_lock(path)
        self._changes = threading.Lock()
        marker = path / CLEAN_SHUTDOWN
        try:
            self.clean = marker.exists()
            marker.unlink(missing_ok=True)
            self._checkpoints = {file: self._read(file) for file in (RECOVERY_POINTS, LOG_STARTS, CLEANED_OFFSETS)}
        except OSError:
            self._unlock()
            raise
        for doomed in path.glob(f"*{DELETE}"):
            shutil.rmtree(doomed, ignore_errors=True)

    def partitions(self) -> list[PartitionName]:
        with os.scandir(self.path) as entries:
            named = [(PartitionName.parse(entry.name), entry) for entry in entries]
            return [name for name, entry in named if name is not None and entry.is_dir()]

    def open_log(
        self,
        name: PartitionName,
        config: LogConfig,
        *,
        now: int,
        durable: bool = False,
        existing: bool = False,
        contiguous: bool = False,
        used: bool = False,
        report: Report = tell,
    ) -> Log:
        """Opens or creates the log of a partition, with its offsets in the checkpoints.

        May run in several threads at a time, for different partitions that exist.

        Args:
            existing: whether the partition was there before: it is a loss then if it isn't, and the checkpoints know
                of records.
            contiguous, report: as in `Log.open`.
            used: whether it was open since the directory was: then it needs recovery.
        """
        directory = self.path / str(name)
        if not directory.exists() and any(name in offsets for offsets in self._checkpoints.values()):
            if existing:
                make_directory(directory)
            else:
                self._drop_deleted()
        recovery_point, log_start, cleaned = (offsets.get(name, 0) for offsets in self._checkpoints.values())
        return Log.open(
            directory, config, now=now, clean=self.clean and not used, recovery_point=recovery_point,
            log_start_offset=log_start, cleaned_offset=cleaned, durable=durable, contiguous=contiguous, report=report,
        )  # fmt: skip

    def recovery_point(self, name: PartitionName) -> int:
        """The offset up to which a partition was flushed at the last checkpoint; 0 without one."""
        return self._checkpoints[RECOVERY_POINTS].get(name, 0)

    def checkpoint(self, logs: Mapping[PartitionName, Log]) -> None:
        """Writes the checkpoints. Those of offline logs don't change.

        Runs in any thread; `logs` must not change in the meantime.

        Raises:
            OSError: it can't be written.
        """
        with self._changes:
            for name, log in logs.items():
                if log.offline is None:
                    self._update_checkpoints(name, log)
            for offsets in self._checkpoints.values():
                for gone in [name for name in offsets if name not in logs]:
                    del offsets[gone]
            self._write()

    def close(self, logs: Mapping[PartitionName, Log]) -> None:
        """Closes all logs and unlocks the directory; marks a clean shutdown if all logs were closed cleanly."""
        # A partition that wasn't opened since a crash still needs recovery.
        clean = self.clean or all(name in logs for name in self.partitions())
        for name, log in logs.items():
            if log.offline is not None:
                clean = False  # its checkpoints don't change
                log.close()
                continue
            try:
                log.close()
            except KafkaError as error:  # the log has logged the reason
                clean = False
                _log.warning("%s: not closed cleanly: %s", name, error)
            else:
                self._update_checkpoints(name, log)
        try:
            self._write()
            if clean:
                write_atomically(self.path / CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":-1}')
        finally:
            self._unlock()

    def _unlock(self) -> None:
        _release_lock(self._lock)

    def properties(self) -> dict[str, str] | None:
        """Reads `meta.properties`: "version", "cluster.id", "node.id", "directory.id"; None without the file."""
        try:
            lines = (self.path / _PROPERTIES).read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {key.strip(): value.strip().replace("\\", "") for key, value in pairs}

    def write_properties(self, properties: Mapping[str, str]) -> None:
        """Writes `meta.properties`.

        Raises:
            OSError: it can't be written.
        """
        lines = (f"{key}={value}\n" for key, value in properties.items())
        write_atomically(self.path / _PROPERTIES, "".join(lines).encode())

    def _drop_deleted(self) -> None:
        """Drops deleted partitions from the checkpoints: new ones of the same name must not inherit their offsets."""
        with self._changes:
            for offsets in self._checkpoints.values():
                for gone in [name for name in offsets if not (self.path / str(name)).exists()]:
                    del offsets[gone]
            try:
                self._write()
            except OSError as error:
                _log.warning("%s: the checkpoints can't be written: %s; they are written again later", self.path, error)

    def _update_checkpoints(self, name: PartitionName, log: Log) -> None:
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
            _log.warning("%s: ignored, as it is invalid: %s", self.path / file, error)
            return {}
        return {PartitionName(*name): offset for name, offset in offsets.items()}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a data directory, so that no server uses it.

    Raises:
        DirectoryInUseError: one does.
        OSError: it can't be used.
    """
    lock = _take_lock(path)
    try:
        yield
    finally:
        _release_lock(lock)


def _take_lock(path: Path) -> int:
    """Returns the descriptor of the lock file."""
    file = path / _LOCK
    reason = "another server uses this data directory: stop it, or give this one a directory of its own"
    # Checked before opening: closing a second descriptor would release the lock.
    if file.exists() and _identity(file.stat()) in _locked:
        raise DirectoryInUseError(errno.EAGAIN, reason, str(path))
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise DirectoryInUseError(error.errno, reason, str(path)) from None
    _locked.add(_identity(os.fstat(lock)))
    return lock


def _release_lock(lock: int) -> None:
    _locked.discard(_identity(os.fstat(lock)))
    os.close(lock)


def write_topic_id(directory: Path, topic_id: uuid.UUID) -> None:
    """Writes a partition's `partition.metadata`.

    Raises:
        OSError: it can't be written.
    """
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    write_atomically(directory / METADATA, text.encode(), sync=False)


def read_topic_id(directory: Path) -> uuid.UUID | None:
    """Reads the topic id of a partition's directory; None without a valid one."""
    try:
        text = (directory / METADATA).read_text()
        _, _, value = text.partition("topic_id:")
        return text_uuid(value.strip())
    except (OSError, ValueError):
        return None


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def text_uuid(text: str) -> uuid.UUID:
    """The UUID of a text that Kafka printed.

    Raises:
        ValueError: the text is none.
    """
    return uuid.UUID(bytes=base64.b64decode(f"{text}==", altchars=b"-_", validate=True))


def uuid_text(value: uuid.UUID) -> str:
    """A UUID as Kafka prints it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
