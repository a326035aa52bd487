"""Whatever happens to a log's files: what is lost is named exactly, and all the rest can be read, or is set aside."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import Log, LogConfig
from kohort.log import segment as segment_module
from kohort.log.damage import Damage, DamageKind, Range, known_losses, note_losses, unknown
from kohort.log.files import read_exactly
from kohort.log.salvage import stretches
from kohort.log.segment import Segment
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import HEADER_SIZE, BatchHeader, check_batch, check_batches
from kohort.protocol.records.rows import encode_records
from tests.log.batches import NOW, batch, headers_of

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=150)
PER_BATCH = 3


def written(path: Path, count: int = 20, *, clean: bool = True) -> tuple[int, dict[int, int]]:
    """Writes a log of `count` batches; returns its end, and the size of each batch by its base offset."""
    log = Log.open(path / "topic-0", SMALL, now=NOW, clean=True)
    for number in range(count):
        log.append(batch(PER_BATCH, timestamp=NOW + number), now=NOW)
    sizes = {header.base_offset: header.size for header in headers_of(log)}
    end = log.log_end_offset
    log.close(clean=clean)
    return end, sizes


def opened(path: Path, *, clean: bool = True, recovery_point: int = 0) -> tuple[Log, list[Damage]]:
    found: list[Damage] = []
    log = Log.open(path / "topic-0", SMALL, now=NOW, clean=clean, recovery_point=recovery_point, report=found.append)
    assert log.offline is None
    return log, found


def segments(path: Path) -> list[Path]:
    return sorted((path / "topic-0").glob("*.log"))


def flip(file: Path, position: int, bits: int = 1) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= bits
    file.write_bytes(content)


def readable(log: Log) -> set[int]:
    """Base offsets of the batches that a reader gets, who goes past damages as soon as he can."""
    found: set[int] = set()
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            data = log.read(offset, 1 << 20, up_to=log.log_end_offset)
        except KafkaError as error:
            assert error.code == ErrorCode.CORRUPT_MESSAGE
            offset += 1
            continue
        if not data:
            break
        for header in check_batches(data):
            found.add(header.base_offset)
            offset = header.next_offset
    return found


def set_aside(path: Path) -> set[int]:
    return {
        header.base_offset
        for file in (path / "topic-0").glob("*.aside*")
        for header in check_batches(file.read_bytes())
    }


def lost(found: list[Damage]) -> set[int]:
    return {offset for damage in found for gone in damage.lost for offset in range(gone.first, gone.end)}


@settings(max_examples=150)
@given(data=st.data())
def test_after_a_crash_all_is_there_or_set_aside_or_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A byte is flipped anywhere, or a file is removed."""
    path = tmp_path_factory.mktemp("log")
    end, sizes = written(path, clean=False)
    file = data.draw(st.sampled_from(segments(path)))
    at = data.draw(st.integers(-1, file.stat().st_size - 1))
    base = int(file.stem)
    starts, position = {}, 0
    for first in [first for first in sizes if base <= first]:
        starts[first] = position
        position += sizes[first]
    inside = {first for first, start in starts.items() if start < file.stat().st_size}
    if at < 0:
        file.unlink()
        hit, exact = inside, True
    else:
        flip(file, at, 1 << data.draw(st.integers(0, 7)))
        hit = {max(first for first in inside if starts[first] <= at)}
        # Leader epoch and base offset aren't under the checksum. A base offset may still be right for a reader.
        exact = at - starts[min(hit)] >= 8
        if at - starts[min(hit)] in range(12, 16):
            hit = set()
    log, found = opened(path, clean=False, recovery_point=end if at < 0 else 0)
    there = readable(log) | set_aside(path)
    assert set(sizes) - there <= hit
    if exact:
        assert there == set(sizes) - hit
        assert lost(found) == {offset for first in hit for offset in range(first, first + PER_BATCH)}
    assert log.log_end_offset >= end - PER_BATCH
    if at < 0:
        assert (log.log_end_offset, log.append(batch(), now=NOW).base_offset) == (end, end)
    log.close()
    # What was said isn't said again.
    log, found = opened(path)
    assert found == []
    log.close()


@settings(max_examples=100)
@given(data=st.data())
def test_after_a_clean_shutdown_all_but_the_damaged_batch_is_there(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """What a coordinator reads; the offsets of what it doesn't get are named."""
    path = tmp_path_factory.mktemp("log")
    end, sizes = written(path)
    file = data.draw(st.sampled_from(segments(path)))
    at = data.draw(st.integers(8, file.stat().st_size - 1))
    flip(file, at, 1 << data.draw(st.integers(0, 7)))
    position, hit = 0, -1
    for first in sorted(first for first in sizes if first >= int(file.stem)):
        if position <= at:
            hit = first
        position += sizes[first]
    place = at - sum(size for first, size in sizes.items() if int(file.stem) <= first < hit)
    log, found = opened(path, recovery_point=end)
    there = {batch.header.base_offset for batch in log.valid_batches()} | set_aside(path)
    if place in range(8) or place in range(12, 16):  # base offset and leader epoch aren't under the checksum
        assert set(sizes) - there <= {hit}
    else:
        assert there == set(sizes) - {hit}
        assert lost(found) == set(range(hit, hit + PER_BATCH))
    log.close()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("which", [0, 2, -1])
def test_a_missing_segment(tmp_path: Path, clean: bool, which: int) -> None:
    end, sizes = written(tmp_path, clean=clean)
    files = segments(tmp_path)
    bases = [*(int(file.stem) for file in files), end]
    files[which].unlink()
    first, following = list(pairwise(bases))[which]
    log, found = opened(tmp_path, clean=clean, recovery_point=end)
    (damage,) = found
    assert (damage.kind, damage.lost) == (DamageKind.MISSING_SEGMENT, (Range(first, following),))
    assert str(damage).startswith(f"topic-0: offsets {first} to {following - 1} are lost (at most {following - first} ")
    assert readable(log) == {base for base in sizes if not first <= base < following}
    assert log.append(batch(), now=NOW).base_offset == end
    log.close()
    assert opened(tmp_path)[1] == []


def test_all_segments_missing(tmp_path: Path) -> None:
    end, _ = written(tmp_path)
    for file in segments(tmp_path):
        file.unlink()
    log, found = opened(tmp_path, recovery_point=end)
    assert [damage.lost for damage in found] == [(Range(0, end),)]
    assert log.append(batch(), now=NOW).base_offset == end


def test_a_gap_that_compaction_made_is_no_loss(tmp_path: Path) -> None:
    end, _ = written(tmp_path)
    segments(tmp_path)[2].unlink()
    found: list[Damage] = []
    config = LogConfig(cleanup_policy=frozenset({"compact"}))
    Log.open(tmp_path / "topic-0", config, now=NOW, clean=True, recovery_point=end, report=found.append).close()
    assert found == []


def test_a_sealed_segment_that_was_cut_short(tmp_path: Path) -> None:
    """Nothing after it is touched."""
    end, sizes = written(tmp_path)
    file = segments(tmp_path)[1]
    content = file.read_bytes()
    file.write_bytes(content[:-5])
    last = max(first for first in sizes if first < int(segments(tmp_path)[2].stem))
    log, found = opened(tmp_path, recovery_point=end)
    (damage,) = found
    assert damage.lost == (Range(last, last + PER_BATCH),)
    assert damage.size == sizes[last] - 5
    assert readable(log) == set(sizes) - {last}


def test_a_batch_inside_a_record_is_not_taken_for_one(tmp_path: Path) -> None:
    log = Log.open(tmp_path / "topic-0", LogConfig(), now=NOW, clean=True)
    bait = bytearray(batch(2))
    bait[:8] = (2).to_bytes(8, "big")
    log.append(batch([(b"k", bytes(bait))]), now=NOW)
    log.append(batch(1), now=NOW)
    log.close(clean=False)
    flip(segments(tmp_path)[0], HEADER_SIZE + 3)
    log, found = opened(tmp_path, clean=False)
    assert [damage.lost for damage in found] == [(Range(0, 1),)]
    assert set_aside(tmp_path) == {1}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what is taken for a batch in the search for one."""
    sizes: list[int] = []

    def counted(data: bytes) -> BatchHeader:
        sizes.append(len(data))
        return check_batch(data)

    monkeypatch.setattr("kohort.log.salvage.check_batch", counted)
    return sizes


def test_records_full_of_headers_do_not_hold_up_the_search(
    tmp_path: Path, looked_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each claims all that follows; the whole batch behind them is found."""
    monkeypatch.setattr("kohort.log.salvage._PATIENCE", 1_000_000)
    header, content = bytearray(batch()[:HEADER_SIZE]), bytearray()
    for left in range(1000, 0, -1):
        header[8:12] = (left * HEADER_SIZE).to_bytes(4, "big")
        content += header
    damaged, whole = bytearray(batch([(b"k", bytes(content))])), bytearray(batch())
    damaged[8] = 0x7F  # a bad length: nothing says where the next batch is
    whole[:8] = (7).to_bytes(8, "big")
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(damaged + whole)
    with file.open("rb") as stream:
        (found,) = stretches(stream.fileno(), 0, file.stat().st_size, base_offset=0, least=0)
    assert (found.offsets, found.size) == (Range(7, 8), len(whole))
    assert sum(looked_at) < 7_000_000  # of 30 million


def test_a_torn_end_is_no_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, 2, clean=False)
    file = segments(tmp_path)[0]
    file.write_bytes(file.read_bytes()[:-1])
    log = Log.open(tmp_path / "topic-0", SMALL, now=NOW, clean=False)
    assert (log.log_end_offset, readable(log)) == (3, {0})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "offsets 3 to 5 are lost (at most 3 records, 126 bytes)" in caplog.text
    assert log.append(batch(), now=NOW).base_offset == 3  # these offsets weren't on the disk


def test_a_reader_that_meets_a_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After a clean shutdown, nobody has looked."""
    end, sizes = written(tmp_path)
    file = segments(tmp_path)[1]
    first = int(file.stem)
    flip(file, 8 + 2, 0x10)  # its length
    log, found = opened(tmp_path, recovery_point=end)
    assert found == []
    assert readable(log) >= {base for base in sizes if not first <= base < int(segments(tmp_path)[2].stem)}
    (damage,) = found  # once
    assert damage.lost == (Range(first, first + PER_BATCH),)
    assert "Readers get CORRUPT_MESSAGE there" in str(damage)
    assert str(damage).endswith(f"kohort log check {tmp_path} --partition topic-0 --repair")
    assert log.append(batch(), now=NOW).base_offset == end
    with pytest.raises(KafkaError) as caught:
        log.offset_for_timestamp(NOW + first // PER_BATCH)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    log.close()


def test_a_damaged_compaction_that_a_crash_left_is_given_up(tmp_path: Path) -> None:
    """What it was made from is still there."""
    end, sizes = written(tmp_path, clean=False)
    file = segments(tmp_path)[0]
    for suffix in (".index", ".timeindex", ".log"):
        shutil.copy(file.with_suffix(suffix), tmp_path / "topic-0" / f"{file.stem}{suffix}.swap")
    flip(tmp_path / "topic-0" / f"{file.name}.swap", 70)
    log, found = opened(tmp_path, clean=False, recovery_point=end)
    assert (readable(log), found) == (set(sizes), [])
    assert not list((tmp_path / "topic-0").glob("*.swap"))


def test_setting_aside_twice_is_as_once(tmp_path: Path) -> None:
    """A crash may come while batches are set aside, and before anything is truncated."""
    written(tmp_path, clean=False)
    flip(segments(tmp_path)[0], 70)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "topic-0", copy / "topic-0")
    opened(tmp_path, clean=False)[0].close()
    for file in (tmp_path / "topic-0").glob("*.aside"):
        shutil.copy(file, copy / "topic-0")
    opened(copy, clean=False)[0].close()
    assert {file.name for file in (copy / "topic-0").glob("*.aside*")} == {
        file.name for file in (tmp_path / "topic-0").glob("*.aside*")
    }


def test_a_disk_without_room_to_set_aside_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, clean=False)
    flip(segments(tmp_path)[0], 70)
    before = {file.name: file.read_bytes() for file in segments(tmp_path)}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kohort.log.aside.write_at", full)
    log = Log.open(tmp_path / "topic-0", SMALL, now=NOW, clean=False)
    assert log.offline is not None
    assert {file.name: file.read_bytes() for file in segments(tmp_path)} == before


RANGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda pair: Range(pair[0], sum(pair))), max_size=5
)


@given(noted=st.lists(RANGES, max_size=3), gap=st.tuples(st.integers(0, 30), st.integers(1, 30)))
def test_known_losses_are_sets_of_offsets(
    tmp_path_factory: pytest.TempPathFactory, noted: list[list[Range]], gap: tuple[int, int]
) -> None:
    path = tmp_path_factory.mktemp("log")
    expected: set[int] = set()
    for ranges in noted:
        note_losses(path, ranges)
        expected.update(offset for loss in ranges for offset in range(loss.first, loss.end))
    known = known_losses(path)
    assert {offset for loss in known for offset in range(loss.first, loss.end)} == expected
    whole = Range(gap[0], sum(gap))
    left = {offset for part in unknown(whole, known) for offset in range(part.first, part.end)}
    assert left == set(range(*whole)) - expected


@pytest.mark.parametrize("value_size", [10, 40_000])
def test_indexes_are_made_anew_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value_size: int) -> None:
    """Of large batches the headers alone are read, or a segment would keep everybody waiting."""
    directory = tmp_path / "topic-0"
    log = Log.open(directory, LogConfig(), now=NOW, clean=True)
    for number in range(200):
        log.append(encode_records([(None, b"v" * value_size)], NOW + number // 3), now=NOW)
    size, end = log.size, log.log_end_offset
    log.close()
    files = [directory / f"00000000000000000000{suffix}" for suffix in (".index", ".timeindex")]
    before = [file.read_bytes() for file in files]
    assert all(before)
    made = Segment(directory, 0, size, NOW)
    read = 0

    def counted(fd: int, length: int, position: int) -> bytes:
        nonlocal read
        read += length
        return read_exactly(fd, length, position)

    monkeypatch.setattr(segment_module, "read_exactly", counted)
    made.make_indexes()
    made.release()
    assert [file.read_bytes() for file in files] == before
    assert read < 2 * 1024 * 1024
    assert made.end_offset() == end
    made.release()


def test_indexes_are_made_of_what_is_before_an_offset_out_of_all_bounds(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    log = Log.open(directory, LogConfig(), now=NOW, clean=True)
    for _ in range(3):
        log.append(encode_records([(None, b"v" * 5000)], NOW), now=NOW)
    size = log.size
    log.close()
    flip(segments(tmp_path)[0], 2 * size // 3 + 3)  # of the last batch's base offset
    made = Segment(directory, 0, size, NOW)
    made.make_indexes()
    assert list(made.index.offsets) == [1]
    made.release()
