"""I/O errors, such as a full disk: the partition goes offline, says what to do, and the process goes on."""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kohort.log import Log, LogConfig
from kohort.log.descriptors import descriptors
from kohort.log.producer_snapshot import load_snapshot, write_snapshot
from kohort.log.producer_state import ProducerStates
from kohort.log.transaction_index import AbortedTransaction, TransactionIndex
from kohort.protocol.errors import ErrorCode
from tests.log.batches import NOW, batch, headers_of, open_log
from tests.log.test_append import refused


@pytest.fixture
def limit_file_size() -> Iterator[Callable[[int], None]]:
    """Files can't grow over a size: the kernel cuts writes short there, and then refuses them, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def offline(log: Log, caplog: pytest.LogCaptureFixture, *words: str) -> None:
    assert log.offline is not None
    assert all(word in caplog.text for word in ("offline", "restart the server", *words))
    for use in (
        lambda: log.append(batch(), now=NOW),
        lambda: log.append_marker(1, 0, commit=True, coordinator_epoch=0, now=NOW),
        lambda: log.read(0, 1, up_to=1),
        lambda: log.offset_for_timestamp(0),
        lambda: log.enforce_retention(NOW),
        log.flush,
    ):
        assert refused(use) == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.last_stable_offset, log.size) == (log.high_watermark, 0)
    log.close()


def test_a_write_cut_short_leaves_nothing(
    tmp_path: Path, limit_file_size: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    log.append(batch(3), now=NOW)
    size = log.size
    limit_file_size(size + 40)
    assert refused(lambda: log.append(batch(3), now=NOW)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert (tmp_path / "topic-0" / "00000000000000000000.log").stat().st_size == size
    assert log.log_end_offset == 3
    offline(log, caplog)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    log.append(batch(3), now=NOW)
    monkeypatch.setattr(os, "pwritev", failing(errno.ENOSPC))
    assert refused(lambda: log.append(batch(), now=NOW)) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    offline(log, caplog, "Free space", str(tmp_path))
    log = open_log(tmp_path, clean=False)
    assert (log.offline, log.log_end_offset) == (None, 3)


def test_a_disk_with_room_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write may fall short without failing; then the whole is written again."""
    real, calls = os.pwritev, []

    def short(fd: int, buffers: Any, position: int) -> int:
        calls.append(position)
        return real(fd, buffers[:1], position) if len(calls) == 1 else real(fd, buffers, position)

    log = open_log(tmp_path)
    monkeypatch.setattr(os, "pwritev", short)
    log.append(batch(3), now=NOW)
    assert len(calls) == 2
    assert len(headers_of(log)) == 1


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
def test_an_index_that_cannot_be_written(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, index_interval_bytes=0, segment_bytes=300)
    log.append(batch(2), now=NOW)
    real: Callable[..., int] = os.open

    def fail(path: Any, flags: int, *rest: int) -> int:
        if suffix in str(path) and flags & os.O_WRONLY | flags & os.O_RDWR:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, *rest)

    def grow() -> None:
        for number in range(10):
            log.append(batch(2, timestamp=NOW + number), now=NOW, leader_epoch=number)

    monkeypatch.setattr(os, "open", fail)
    assert refused(grow) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    acknowledged = log.log_end_offset
    offline(log, caplog, "Free space")
    log = open_log(tmp_path, clean=False)
    assert log.offline is None
    assert log.log_end_offset >= acknowledged


def test_a_file_that_is_cut_behind_our_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    log.append(batch(30), now=NOW)
    os.truncate(tmp_path / "topic-0" / "00000000000000000000.log", 100)
    assert refused(lambda: log.read(0, 1 << 20, up_to=30)) == ErrorCode.KAFKA_STORAGE_ERROR
    offline(log, caplog)


def test_a_file_that_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    for _ in range(30):
        log.append(batch(2), now=NOW)
    (tmp_path / "topic-0" / "00000000000000000000.log").unlink()
    assert refused(lambda: log.read(0, 1, up_to=60)) == ErrorCode.KAFKA_STORAGE_ERROR
    offline(log, caplog, "removed")


def test_an_unreadable_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now=NOW)
    log.close()
    monkeypatch.setattr(os, "scandir", failing(errno.EACCES))
    log = open_log(tmp_path)
    monkeypatch.undo()
    offline(log, caplog, "read and write")
    assert open_log(tmp_path).log_end_offset == 1


def test_fsync_that_fails_once_is_never_trusted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, durable=True)
    log.append(batch(), now=NOW)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    assert refused(log.flush) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert log.high_watermark == 0
    offline(log, caplog, "Check the disk")


def test_a_compaction_without_room_leaves_the_log_as_it_is(
    tmp_path: Path, limit_file_size: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, cleanup_policy=frozenset({"compact"}), segment_bytes=1000)
    for _ in range(100):
        log.append(batch(3), now=NOW)
    before = headers_of(log)
    plan = log.plan_compaction(NOW)
    assert plan is not None
    limit_file_size(20)
    assert not plan.run()
    assert "it is unchanged" in caplog.text
    assert (log.offline, headers_of(log)) == (None, before)
    assert not list((tmp_path / "topic-0").glob("*.cleaned"))


def test_flushing_while_the_log_goes_on(tmp_path: Path) -> None:
    """Segments come and go while another thread flushes; nothing breaks, and the end is flushed at last."""
    log = open_log(tmp_path, segment_bytes=300)
    stop = threading.Event()
    failures: list[BaseException] = []

    def flush() -> None:
        try:
            while not stop.is_set():
                assert log.flush() <= log.log_end_offset
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=flush)
    thread.start()
    for number in range(300):
        log.append(batch(2), now=NOW)
        if number % 30 == 29:
            log.delete_records(log.log_end_offset - 20)
        if number % 10 == 0:
            log.read(log.log_start_offset, 100, up_to=log.log_end_offset)
    stop.set()
    thread.join()
    assert not failures
    assert log.flush() == log.log_end_offset == 600


def test_a_durable_log_that_cannot_be_flushed_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now=NOW)
    log.close(clean=False)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    log = open_log(tmp_path, clean=False, durable=True)
    monkeypatch.undo()
    offline(log, caplog, "Check the disk")


def test_aborted_transactions_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    log.append(batch(producer=(1, 0), transactional=True), now=NOW)
    log.append_marker(1, 0, commit=False, coordinator_epoch=0, now=NOW)
    log.close()
    log = open_log(tmp_path)
    monkeypatch.setattr("kohort.log.transaction_index.read_whole", failing(errno.EIO))
    assert refused(lambda: log.aborted_transactions(0, 2)) == ErrorCode.KAFKA_STORAGE_ERROR
    offline(log, caplog, "Check the disk")


def test_closing_what_nobody_has_touched_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now=NOW)
    log.close()
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), real(fd)))
    log = open_log(tmp_path)
    log.close()
    Log.open(tmp_path / "topic-1", LogConfig(), now=NOW, clean=True).close()
    assert not synced
    assert [path.name for path in (tmp_path / "topic-1").iterdir()] == ["00000000000000000000.log"]
    log = open_log(tmp_path)
    log.append(batch(), now=NOW)
    log.close()
    assert synced


@pytest.mark.parametrize("clean", [True, False])
def test_names_that_may_never_have_been_synced_are(
    tmp_path: Path, clean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is on the disk only when its name is; the server may have ended before anything was synced."""
    open_log(tmp_path).close(clean=clean)
    synced: list[Path] = []
    monkeypatch.setattr("kohort.log.local_log.fsync_directory", synced.append)
    log = open_log(tmp_path, clean=clean, durable=True)
    log.append(batch(), now=NOW)
    log.flush()
    assert synced == [tmp_path / "topic-0", tmp_path]


@contextmanager
def no_descriptors() -> Iterator[None]:
    """All are in use, but for the reserve."""
    assert descriptors.fill()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(fd.name) for fd in Path("/proc/self/fd").iterdir()) + 1, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


def test_small_files_are_read_with_a_descriptor_of_the_reserve(tmp_path: Path) -> None:
    """A partition needn't go offline for them."""
    entry = AbortedTransaction(1, 2, 3, 4)
    TransactionIndex(tmp_path / "a.txnindex", load=False).append(entry)
    write_snapshot(tmp_path, 5, ProducerStates())
    with no_descriptors():
        found = TransactionIndex(tmp_path / "a.txnindex", load=True)
        snapshot = load_snapshot(tmp_path, [5], ProducerStates())
    assert (found.entries, snapshot) == ([entry], 5)


def test_a_search_for_the_latest_record_that_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    log.append(batch(timestamp=NOW), now=NOW)
    monkeypatch.setattr("kohort.log.log.latest_timestamp", failing(errno.EIO))
    assert refused(log.max_timestamp_offset) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "can't be read" in str(log.offline)
