"""Recovery after a crash at any byte: complete batches are kept, flushed ones always, and appends go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import Log, LogConfig
from kohort.log.damage import Damage
from kohort.protocol.records.batch import Compression
from tests.log.batches import NOW, batch, headers_of, open_log, records_of

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=150)


def reopened(path: Path, *, recovery_point: int = 0, clean: bool = False, start: int = 0) -> Log:
    return Log.open(
        path / "topic-0", SMALL, now=NOW, clean=clean, recovery_point=recovery_point, log_start_offset=start
    )


def write(path: Path, batches: list[tuple[int, bool, Compression]]) -> tuple[Log, list[int], list[int]]:
    """A log of batches: (records, transactional, codec). Returns it, ends in offsets, ends in bytes of the stream."""
    log = reopened(path)
    offsets, sizes = [], []
    sequence = 0
    for count, transactional, codec in batches:
        if transactional:
            sent = batch(count, producer=(5, 0), sequence=sequence, transactional=True, codec=codec)
            sequence += count
        else:
            sent = batch(count, codec=codec)
        log.append(sent, now=NOW)
        offsets.append(log.log_end_offset)
        sizes.append(log.size)
    return log, offsets, sizes


def cut(path: Path, position: int, tail: bytes) -> None:
    """What a crash may leave: the stream of batches ends at a byte, and then there may be rubbish."""
    for file in sorted((path / "topic-0").glob("*.log")):
        size = file.stat().st_size
        if position >= size:
            position -= size
        elif position < 0:
            file.unlink()
        else:
            with file.open("r+b") as stream:
                stream.truncate(position)
                stream.seek(position)
                stream.write(tail)
            position = -1


BATCHES = st.lists(
    st.tuples(st.integers(1, 4), st.booleans(), st.sampled_from([Compression.NONE, Compression.GZIP])),
    min_size=1,
    max_size=14,
)


@settings(max_examples=150)
@given(batches=BATCHES, data=st.data())
def test_the_longest_prefix_of_whole_batches_survives(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, bool, Compression]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log")
    log, offsets, sizes = write(path, batches)
    flushed = data.draw(st.integers(0, len(batches)))  # batches that were flushed: nothing happens to them
    recovery_point = offsets[flushed - 1] if flushed else 0
    before = headers_of(log)
    log.close(clean=False)
    at = data.draw(st.integers(sizes[flushed - 1] if flushed else 0, sizes[-1]))
    tail = data.draw(st.sampled_from([b"", b"\0" * 10, b"\0" * 200, b"\xff" * 70]))
    lost = b"".join(file.read_bytes() for file in sorted((path / "topic-0").glob("*.log")))[at:]
    cut(path, at, tail)
    for name in data.draw(st.lists(st.sampled_from(["*.index", "*.timeindex", "*.snapshot", "*.txnindex"]))):
        for file in (path / "topic-0").glob(name):
            file.write_bytes(file.read_bytes()[:5])
    log = reopened(path, recovery_point=recovery_point)
    # A batch may have ended with the zeros that stand there now.
    whole = at + next(same for same in range(len(tail), -1, -1) if lost.startswith(tail[:same]))
    kept = sum(size <= whole for size in sizes)
    assert log.offline is None
    assert log.log_end_offset == ([0, *offsets])[kept]
    assert headers_of(log) == before[:kept]
    mine = [first for first, (_, transactional, _) in zip([0, *offsets], batches[:kept], strict=False) if transactional]
    assert log.last_stable_offset == (mine[0] if mine else log.log_end_offset)
    # It goes on, and a clean restart finds the same.
    end = log.log_end_offset
    assert log.append(batch(2), now=NOW).base_offset == end
    found = headers_of(log)
    log.close()
    log = reopened(path, clean=True)
    assert headers_of(log) == found
    log.close()


@settings(max_examples=80)
@given(batches=BATCHES, data=st.data())
def test_a_flipped_byte_ends_the_log_there(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, bool, Compression]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log")
    log, offsets, sizes = write(path, batches)
    log.close(clean=False)
    at = data.draw(st.integers(0, sizes[-1] - 1))
    place = at
    for file in sorted((path / "topic-0").glob("*.log")):
        if place < file.stat().st_size:
            content = bytearray(file.read_bytes())
            content[place] ^= 1 << data.draw(st.integers(0, 7))
            file.write_bytes(content)
            break
        place -= file.stat().st_size
    log = reopened(path)
    hit = sum(size <= at for size in sizes)
    ends = [0, *offsets]
    # Base offset (forward) and leader epoch aren't under the checksum: such a batch may stay.
    assert ends[hit] <= log.log_end_offset
    if log.log_end_offset == ends[hit]:
        assert len(headers_of(log)) == hit
    assert log.offline is None
    log.close()


def test_nothing_stays_readable_after_a_batch_that_is_damaged(tmp_path: Path) -> None:
    log, offsets, sizes = write(tmp_path, [(3, False, Compression.NONE)] * 20)
    log.close(clean=False)
    directory = tmp_path / "topic-0"
    assert len(list(directory.glob("*.log"))) > 3
    first = directory / "00000000000000000000.log"
    content = bytearray(first.read_bytes())
    content[sizes[1] + 40] ^= 1
    first.write_bytes(content)
    log = reopened(tmp_path)
    assert (log.log_end_offset, log.size) == (offsets[-1], sizes[1])
    assert sorted(int(path.stem) for path in directory.glob("0*.log")) == [0, offsets[-1]]
    assert [header.next_offset for header in headers_of(log)] == offsets[:2]
    log.append(batch(), now=NOW)
    assert [header.base_offset for header in headers_of(log)] == [0, offsets[0], offsets[-1]]


def test_only_what_is_after_the_recovery_point_is_read(tmp_path: Path) -> None:
    log, offsets, _ = write(tmp_path, [(3, False, Compression.NONE)] * 20)
    log.close(clean=False)
    first = tmp_path / "topic-0" / "00000000000000000000.log"
    content = bytearray(first.read_bytes())
    content[100] ^= 1  # nobody sees it until it is read
    first.write_bytes(content)
    log = reopened(tmp_path, recovery_point=offsets[10])
    assert log.log_end_offset == offsets[-1]
    log.close(clean=False)
    log = reopened(tmp_path)
    assert (log.size, log.log_end_offset) == (0, offsets[-1])


def test_after_a_clean_shutdown_only_the_end_is_read(tmp_path: Path) -> None:
    """However much is in the active segment, a start takes no longer."""
    log, offsets, _ = write(tmp_path, [(3, False, Compression.NONE)] * 22)
    log.close()
    active = max((tmp_path / "topic-0").glob("*.log"))
    content = bytearray(active.read_bytes())
    content[100] ^= 1  # nobody sees it until it is read
    active.write_bytes(content)
    found: list[Damage] = []
    log = Log.open(tmp_path / "topic-0", SMALL, now=NOW, clean=True, recovery_point=offsets[-1], report=found.append)
    assert (log.log_end_offset, found) == (offsets[-1], [])


def test_the_state_of_producers_is_read_from_where_its_snapshot_ends(tmp_path: Path) -> None:
    log, offsets, _ = write(tmp_path, [(1, True, Compression.NONE)] * 40)
    log.close()
    max((tmp_path / "topic-0").glob("*.snapshot")).unlink()
    log = reopened(tmp_path, clean=True, recovery_point=offsets[-1])
    assert log.producers()[0].last_sequence == 39
    assert log.append(batch(producer=(5, 0), sequence=40, transactional=True), now=NOW).base_offset == 40


def test_recovered_indexes_are_those_that_were(tmp_path: Path) -> None:
    log, _, _ = write(tmp_path, [(3, number % 3 == 0, Compression.NONE) for number in range(30)])
    log.append_marker(5, 0, commit=False, coordinator_epoch=0, now=NOW)
    log.close()
    directory = tmp_path / "topic-0"
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert any(name.endswith(".txnindex") for name in before)
    for path in directory.iterdir():
        if path.suffix != ".log":
            path.unlink()
    reopened(tmp_path).close()
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    last = max(name for name in after if name.endswith(".snapshot"))
    assert {name: data for name, data in after.items() if not name.endswith(".snapshot")} == {
        name: data for name, data in before.items() if not name.endswith(".snapshot")
    }
    assert after[last] == before[last]


def test_a_missing_index_is_made_anew_even_after_a_clean_shutdown(tmp_path: Path) -> None:
    log, offsets, _ = write(tmp_path, [(3, False, Compression.NONE)] * 20)
    log.close()
    lost = sorted((tmp_path / "topic-0").glob("*.index"))[1]
    before = lost.read_bytes()
    lost.unlink()
    log = reopened(tmp_path, clean=True, recovery_point=offsets[-1])
    assert (log.log_end_offset, lost.read_bytes()) == (offsets[-1], before)


def test_a_clean_shutdown_that_was_none(tmp_path: Path) -> None:
    log, offsets, sizes = write(tmp_path, [(3, False, Compression.NONE)] * 5)
    log.close()
    cut(tmp_path, sizes[-1] - 1, b"")
    assert reopened(tmp_path, clean=True).log_end_offset == offsets[-2]


def test_indexes_without_a_log_are_removed(tmp_path: Path) -> None:
    log, _, _ = write(tmp_path, [(1, False, Compression.NONE)])
    log.close()
    stray = tmp_path / "topic-0" / "00000000000000000009.index"
    stray.write_bytes(bytes(8))
    reopened(tmp_path, clean=True)
    assert not stray.exists()


def test_a_log_that_ends_before_its_start_begins_there(tmp_path: Path) -> None:
    """The checkpoint says that records up to 100 were deleted, but the files are older than that."""
    log, _, _ = write(tmp_path, [(3, False, Compression.NONE)] * 10)
    log.close()
    log = reopened(tmp_path, clean=True, start=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert log.append(batch(), now=NOW).base_offset == 100


def test_a_clean_log_that_ends_before_its_index_does(tmp_path: Path) -> None:
    log, offsets, sizes = write(tmp_path, [(1, False, Compression.NONE)] * 6)
    assert len(log._segments) == 1
    log.close()
    cut(tmp_path, sizes[0], b"")
    log = reopened(tmp_path, clean=True)
    assert log.log_end_offset == offsets[0]
    assert log.append(batch(), now=NOW).base_offset == offsets[0]
    assert len(headers_of(log)) == 2


def test_damage_before_the_recovery_point_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without snapshots, all of the log is read for its producers."""
    log, offsets, _ = write(tmp_path, [(3, True, Compression.NONE)] * 20)
    log.close(clean=False)
    for snapshot in (tmp_path / "topic-0").glob("*.snapshot"):
        snapshot.unlink()
    first = tmp_path / "topic-0" / "00000000000000000000.log"
    content = bytearray(first.read_bytes())
    content[16] = 9
    first.write_bytes(content)
    log = reopened(tmp_path, recovery_point=offsets[-1])
    assert "offsets 0 to 2 are lost" in caplog.text
    assert [header.next_offset for header in headers_of(log, 3)] == offsets[1:]
    log.close()


def files_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_segments_that_were_recovered_keep_no_files_open(tmp_path: Path) -> None:
    log, _, _ = write(tmp_path, [(3, False, Compression.NONE)] * 100)
    log.close(clean=False)
    before = files_open()
    log = reopened(tmp_path)
    assert len(log._segments) > 20
    assert files_open() - before <= 3
    log.close(clean=False)
    assert files_open() == before


def test_snapshots_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(5):
        log = reopened(tmp_path, clean=number % 2 == 0)
        log.append(batch(producer=(1, 0), sequence=number), now=NOW)
        log.close()
    assert sorted(path.name for path in (tmp_path / "topic-0").glob("*.snapshot")) == [
        "00000000000000000004.snapshot", "00000000000000000005.snapshot",
    ]  # fmt: skip


def test_damaged_leader_epochs_are_passed_over(tmp_path: Path) -> None:
    log, offsets, _ = write(tmp_path, [(3, False, Compression.NONE)] * 3)
    log.close()
    (tmp_path / "topic-0" / "leader-epoch-checkpoint").write_text("0\n7\nrubbish")
    log = reopened(tmp_path)
    assert (log.log_end_offset, log.latest_epoch) == (offsets[-1], 0)


def test_preallocated_indexes_of_a_crashed_kafka(tmp_path: Path) -> None:
    log, offsets, _ = write(tmp_path, [(3, False, Compression.NONE)] * 3)
    log.close(clean=False)
    for name in ("index", "timeindex"):
        with (tmp_path / "topic-0" / f"00000000000000000000.{name}").open("ab") as stream:
            stream.truncate(12 * 1000)
    for clean in (True, False):
        log = reopened(tmp_path, clean=clean)
        assert log.log_end_offset == offsets[-1]
        assert log.max_timestamp_offset() is not None or clean
        assert log.append(batch(), now=NOW).base_offset == offsets[-1]
        offsets.append(log.log_end_offset)
        log.close(clean=False)


WRITER = """
import sys
from pathlib import Path
from tests.log.batches import NOW, batch
from kohort.log import Log, LogConfig
from kohort.log.damage import Damage
log = Log.open(Path(sys.argv[1]) / "topic-0", LogConfig(segment_bytes=20000), now=NOW, clean=False)
sequence = 0
while True:
    done = log.append(batch(3, producer=(1, 0), sequence=sequence), now=NOW)
    sequence += 3
    print(done.last_offset, flush=True)
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    end = 0
    for round_number in range(3):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        script = WRITER.replace("sequence = 0", f"sequence = {end}")
        child = subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True, env=env)
        assert child.stdout is not None
        acknowledged = -1
        for _ in range(400 + 57 * round_number):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
        child.wait()
        child.stdout.close()
        log = Log.open(tmp_path / "topic-0", LogConfig(segment_bytes=20000), now=NOW, clean=False)
        end = log.log_end_offset
        assert end > acknowledged
        assert [record.offset for record in records_of(log)] == list(range(end))
        log.close(clean=False)


def test_durable_logs_show_only_what_is_on_the_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path, durable=True)
    log.append(batch(2), now=NOW)
    assert (log.high_watermark, log.last_stable_offset, log.log_end_offset) == (0, 0, 2)
    assert log.flush() == 2
    assert (log.high_watermark, log.flushed_offset) == (2, 2)
    log.append(batch(), now=NOW)
    log.close(clean=False)
    log = open_log(tmp_path, clean=False, durable=True)
    assert log.high_watermark == 3


def test_flush_is_due(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_messages=3, flush_ms=100)
    assert not log.flush_due(NOW + 1000)
    log.append(batch(2), now=NOW)
    assert [log.flush_due(NOW), log.flush_due(NOW + 99), log.flush_due(NOW + 100)] == [False, False, True]
    log.append(batch(1), now=NOW)
    assert log.flush_due(NOW)
    log.flush()
    assert not log.flush_due(NOW + 1000)


def test_a_complete_segment_is_to_be_flushed(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=130)
    log.append(batch(2), now=NOW)
    assert not log.flush_due(NOW + 10**9)
    log.append(batch(2), now=NOW)
    assert log.flush_due(NOW)
    assert log.flush() == 4
    assert not log.flush_due(NOW)


def test_a_copy_of_a_running_log_can_be_opened(tmp_path: Path) -> None:
    log, offsets, _ = write(tmp_path / "a", [(2, True, Compression.NONE)] * 9)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copy = reopened(tmp_path / "b")
    assert (copy.log_end_offset, headers_of(copy)) == (offsets[-1], headers_of(log))
