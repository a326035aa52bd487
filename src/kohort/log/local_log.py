"""The state of a log, flushing, closing, and what happens on I/O errors."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kohort.log.config import LogConfig
from kohort.log.descriptors import STARVED, descriptors
from kohort.log.files import fsync_directory
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.producer_snapshot import write_snapshot
from kohort.log.producer_state import ProducerStates
from kohort.log.segment import DamagedSegmentError
from kohort.log.segments import Segments
from kohort.log.types import EpochEnd, ProducerSummary
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError

_log: Final = logging.getLogger("kohort.log")


class LocalLog:
    """The base of `Log`, which describes the attributes."""

    _segments: Segments
    _epochs: LeaderEpochs
    _snapshot_offset: int

    def __init__(self, directory: Path, config: LogConfig, *, durable: bool) -> None:
        self.directory = directory
        self.config = config
        self.durable = durable
        self.log_start_offset = self.log_end_offset = self.flushed_offset = self.cleaned_offset = 0
        self.offline: str | None = None
        self.starved = False
        self._lock = threading.Lock()  # while a descriptor is duplicated, it must not be closed and its number reused
        self.loaded = False
        self._producers = ProducerStates()
        self._unsynced_names = self._sealed_unflushed = False
        self._unflushed_since: int | None = None

    # State

    @property
    def high_watermark(self) -> int:
        """The log end offset, or the flushed offset if the log is `durable`."""
        return self.flushed_offset if self.durable else self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest ongoing transaction, or the high watermark without one."""
        watermark = self.high_watermark
        if self.offline is None:
            for first in self._producers.ongoing.values():
                return min(max(first, self.log_start_offset), watermark)
        return watermark

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return 0 if self.offline is not None else self._segments.size

    @property
    def latest_epoch(self) -> int:
        """The latest leader epoch of any batch, -1 without one."""
        return -1 if self.offline is not None else self._epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Returns the leader epoch, or the latest before it, with its end offset (KIP-101); -1 and -1 if unknown."""
        self._check()
        return self._epochs.end_of(epoch, self.log_end_offset)

    def producers(self) -> list[ProducerSummary]:
        """The producer state, for DescribeProducers."""
        self._check()
        return list(self._producers.summaries())

    def expire_producers(self, now: int) -> int:
        """Expires the state of producers idle for `producer.id.expiration.ms`; returns how many."""
        return self._producers.expire(now, self.config.producer_id_expiration_ms)

    def ongoing_since(self, producer_id: int) -> int | None:
        """The first offset of a producer's ongoing transaction, None if it has none here."""
        return self._producers.ongoing.get(producer_id)

    def has_ongoing(self, producer_id: int) -> bool:
        """Whether a producer has an ongoing transaction here."""
        return self.ongoing_since(producer_id) is not None

    # Flushing and closing

    def flush_due(self, now: int) -> bool:
        """Returns whether a flush is due by `flush.messages` or `flush.ms`, or for a sealed segment.

        Kafka flushes sealed segments as well, so that recovery needn't start before them.
        """
        since = self._unflushed_since
        return since is not None and (
            self._sealed_unflushed
            or self.log_end_offset - self.flushed_offset >= self.config.flush_messages
            or now - since >= self.config.flush_ms
        )

    def flush(self) -> int:
        """Flushes everything appended before the call to the disk, and returns the flushed offset.

        Runs in any thread, one call at a time, while the log's own thread goes on.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR. The log is offline then: the disk's state after a failed fsync is unknown.
        """
        self._check()
        self._unflushed_since = None
        with self._storing("flushed"):
            with self._lock:
                end = self.log_end_offset
                active = self._segments.active
                sealed = [segment for segment in self._segments if segment.unflushed and segment is not active]
                fd = active.duplicate()
                names, self._unsynced_names = self._unsynced_names, False
                self._sealed_unflushed = False
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            for segment in sealed:
                segment.sync()
            if names:
                fsync_directory(self.directory)
                fsync_directory(self.directory.parent)
        self.flushed_offset = max(self.flushed_offset, end)
        return self.flushed_offset

    def close(self, *, clean: bool = True) -> None:
        """Closes the files; with `clean`, flushes everything first, so that the next `open` needs no recovery.

        An offline log is closed without a flush.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log needs recovery when it is opened.
        """
        if not self.loaded:
            return
        try:
            if clean and self.offline is None and self._has_unflushed():
                with self._storing("closed"):
                    self._snapshot()
                    active = self._segments.active
                    active.seal()
                    if active.unflushed:
                        active.sync()
                self.flush()
        finally:
            self.loaded = False
            with self._lock:
                for segment in self._segments:
                    segment.release()
            if self.offline is None:
                self.offline = "it is closed"

    def delete(self) -> None:
        """Deletes the log. The directory is renamed first, so that a crash leaves no part of it under its name."""
        self.close(clean=False)
        doomed = self.directory.with_name(f"{self.directory.name[:200]}.{os.urandom(16).hex()}-delete")
        try:
            self.directory.rename(doomed)
            _remove(doomed)
        except FileNotFoundError:
            pass
        except OSError as error:
            when = "the next start tries again" if doomed.exists() else "remove it by hand"
            _log.error("%s: can't be removed: %s; %s", self.directory, error, when)

    # Internals

    def _has_unflushed(self) -> bool:
        """Returns whether anything isn't flushed, indexes included."""
        return self.flushed_offset < self.log_end_offset or any(segment.unflushed for segment in self._segments)

    def _snapshot(self) -> None:
        if self._snapshot_offset != self.log_end_offset:
            write_snapshot(self.directory, self.log_end_offset, self._producers)
            self._snapshot_offset = self.log_end_offset

    def _check(self) -> None:
        if self.offline is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory.name} is offline: {self.offline}")

    @contextmanager
    def _storing(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._fail(action, error) from error
        except DamagedSegmentError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: DamagedSegmentError) -> KafkaError:
        """The error for a reader who has met a damage. The log goes on: other offsets can be read."""
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{self.directory.name} is damaged from offset {error.expected} on. The server's log says more.",
        )

    def _fail(self, action: str, error: OSError | CorruptRecordError) -> KafkaError:
        """Takes the log offline, and logs the reason with advice for the operator."""
        if self.offline is None:
            self.offline = f"it can't be {action}: {error}"
            self.starved = isinstance(error, OSError) and error.errno in STARVED
            _log.error("%s: %s. The partition is offline. %s", self.directory, self.offline, _advice(error))
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory.name} is offline: {self.offline}")


def _remove(directory: Path) -> None:
    """Removes a directory; where descriptors are short, other files are closed for it."""
    while True:
        try:
            shutil.rmtree(directory)
        except OSError as error:
            if error.errno not in STARVED or not descriptors.make_room():
                raise
        else:
            return


def _advice(error: OSError | CorruptRecordError) -> str:
    if isinstance(error, CorruptRecordError):
        return (
            "Stop the server, run `kohort log check` with the data directory and --repair, or restore the directory "
            "from a backup; then restart the server."
        )
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "Free space on that disk (or lower retention.bytes or retention.ms), then restart the server."
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "Let the server's user read and write the directory and the files in it, then restart the server."
        case errno.EMFILE | errno.ENFILE:
            return "It comes back by itself when there are some; raise the limit on open files (ulimit -n)."
        case errno.ENOENT | errno.ENOTDIR:
            return "Something has removed files in use: restart the server to go on with the remaining ones."
        case _:
            return "Check the disk (dmesg, smartctl); restart the server when it is sound: valid batches are kept."
