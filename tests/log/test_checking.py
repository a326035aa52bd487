"""What a check finds in a partition's files, and what a repair leaves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import Log, LogConfig
from kohort.log.aside import copy_out
from kohort.log.checking import KINDS, Checkpoints, Finding, check_partition
from kohort.log.damage import Range
from kohort.log.repair import repair_partition
from tests.log.batches import NOW, batch
from tests.log.test_damage import PER_BATCH, SMALL, flip, opened, readable, segments, set_aside, written


def found(path: Path, recovery_point: int = 0, *, clean: bool = True, **checkpoints: int) -> list[Finding]:
    saved = Checkpoints(recovery_point, **checkpoints)
    findings = list(check_partition(path / "topic-0", saved, clean=clean))
    assert {finding.kind for finding in findings} <= set(KINDS)
    return findings


def repaired(path: Path, recovery_point: int = 0) -> None:
    repair_partition(path / "topic-0", Checkpoints(recovery_point), now=NOW)


def test_nothing_is_wrong_with_what_a_server_leaves(tmp_path: Path) -> None:
    end, _ = written(tmp_path)
    before = {file.name: file.read_bytes() for file in (tmp_path / "topic-0").iterdir()}
    assert found(tmp_path, end) == []
    assert {file.name: file.read_bytes() for file in (tmp_path / "topic-0").iterdir()} == before


@settings(max_examples=100)
@given(data=st.data())
def test_any_damage_is_found_and_repaired(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A byte of any file is flipped, or a file is removed; all whole batches can be read after the repair."""
    path = tmp_path_factory.mktemp("log")
    end, sizes = written(path)
    files = [file for file in sorted((path / "topic-0").iterdir()) if file.suffix in (".log", ".index", ".timeindex")]
    file = data.draw(st.sampled_from([file for file in files if file.stat().st_size]))
    at = data.draw(st.integers(-1, file.stat().st_size - 1))
    hit: set[int] = set()
    starts: dict[int, int] = {}
    if file.suffix == ".log":
        position = 0
        for first in sorted(base for base in sizes if base >= int(file.stem)):
            if position < file.stat().st_size:
                starts[first] = position
                position += sizes[first]
        hit = set(starts) if at < 0 else {max(first for first, start in starts.items() if start <= at)}
    place = at - starts[min(hit)] if hit else 0
    if at < 0:
        file.unlink()
    else:
        flip(file, at, 1 << data.draw(st.integers(0, 7)))
    findings = found(path, end)
    # The checksum covers neither base offset nor leader epoch: what the log says then counts.
    if file.suffix == ".log" and (at < 0 or place in range(8, 12) or place >= 16):
        lost = {offset for each in findings for gone in each.offsets for offset in range(gone.first, gone.end)}
        assert lost == {offset for first in hit for offset in range(first, first + PER_BATCH)}
    if file.suffix != ".log" and file != segments(path)[-1].with_suffix(file.suffix):
        assert [each.kind for each in findings] == ["wrong index"]
    repaired(path, end)
    assert found(path, end) == []
    log, damages = opened(path, recovery_point=end)
    assert damages == []
    assert set(sizes) - readable(log) <= hit
    assert log.append(batch(), now=NOW).base_offset >= end
    log.close()


def test_what_was_set_aside_is_brought_back(tmp_path: Path) -> None:
    end, sizes = written(tmp_path, clean=False)
    flip(segments(tmp_path)[0], 70)
    log, _ = opened(tmp_path, clean=False)
    log.append(batch(PER_BATCH), now=NOW)
    assert readable(log) == {end}
    log.close()
    kinds = [(each.kind, each.remedy) for each in found(tmp_path)]
    assert set(kinds) == {("set aside", "brought back")}
    repaired(tmp_path)
    assert found(tmp_path) == []
    assert set_aside(tmp_path) == set()
    log, damages = opened(tmp_path)
    assert (readable(log), damages) == ({*sizes, end} - {0}, [])


def test_what_cannot_be_brought_back_stays_aside(tmp_path: Path) -> None:
    """Other records have the offsets: a server that gives them anew was here."""
    written(tmp_path, 2)
    log = segments(tmp_path)[0]
    (tmp_path / "topic-0" / "00000000000000000003.log.aside").write_bytes(
        log.read_bytes()[len(log.read_bytes()) // 2 :]
    )
    (finding,) = found(tmp_path)
    assert (finding.kind, finding.offsets, finding.remedy) == ("set aside", (Range(3, 6),), "")
    repaired(tmp_path)
    assert set_aside(tmp_path) == {3}


def test_damaged_batches_are_cut_out(tmp_path: Path) -> None:
    end, sizes = written(tmp_path)
    for file in segments(tmp_path)[1:3]:
        flip(file, 70)
    gone = {int(file.stem) for file in segments(tmp_path)[1:3]}
    assert [each.offsets for each in found(tmp_path, end)] == [(Range(first, first + 3),) for first in sorted(gone)]
    repaired(tmp_path, end)
    log, damages = opened(tmp_path, recovery_point=end)
    assert (readable(log), log.log_end_offset, damages) == (set(sizes) - gone, end, [])


def test_a_repair_that_was_interrupted_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end, sizes = written(tmp_path)
    file = segments(tmp_path)[1]
    flip(file, 70)
    with monkeypatch.context() as patched:

        def crash(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr("kohort.log.repair.os.ftruncate", crash)
        with pytest.raises(KeyboardInterrupt):
            repaired(tmp_path, end)
    assert "damaged batch" in {each.kind for each in found(tmp_path, end)}
    repaired(tmp_path, end)
    assert found(tmp_path, end) == []
    log, _ = opened(tmp_path, recovery_point=end)
    assert readable(log) == set(sizes) - {int(file.stem)}


@pytest.mark.parametrize("damaged", [(1, 3), (0, 2)], ids=["the first batch stays", "the first batch is gone"])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_repair_that_ends_between_two_copies_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: tuple[int, ...], copies: int
) -> None:
    monkeypatch.setattr("tests.log.test_damage.SMALL", LogConfig(segment_bytes=1200))
    end, sizes = written(tmp_path)
    file, after = segments(tmp_path)[:2]
    bases = [base for base in sorted(sizes) if base < int(after.stem)]
    assert len(bases) > 4
    for number in damaged:
        flip(file, sum(sizes[base] for base in bases[:number]) + 70)
    with monkeypatch.context() as patched:
        left = copies

        def copy(*arguments: Any) -> None:
            nonlocal left
            copy_out(*arguments)
            left -= 1
            if not left:
                raise KeyboardInterrupt

        patched.setattr("kohort.log.repair.copy_out", copy)
        with pytest.raises(KeyboardInterrupt):
            repaired(tmp_path, end)
    repaired(tmp_path, end)
    log, _ = opened(tmp_path, recovery_point=end)
    assert readable(log) == set(sizes) - {bases[number] for number in damaged}


def test_a_torn_end_after_a_crash_is_not_a_loss(tmp_path: Path) -> None:
    written(tmp_path, 3, clean=False)
    file = segments(tmp_path)[-1]
    file.write_bytes(file.read_bytes()[:-1])
    (finding,) = found(tmp_path, clean=False)
    assert (finding.kind, finding.offsets) == ("torn end", ())
    (finding,) = found(tmp_path, 9, clean=True)
    assert (finding.kind, finding.offsets) == ("damaged batch", (Range(6, 9),))


def test_overlapping_segments(tmp_path: Path) -> None:
    end, sizes = written(tmp_path)
    one, two = segments(tmp_path)[:2]
    one.write_bytes(one.read_bytes() + two.read_bytes())
    (finding,) = [each for each in found(tmp_path, end) if each.kind == "overlapping segments"]
    assert finding.file == one.name
    assert finding.size == two.stat().st_size
    repaired(tmp_path, end)
    assert found(tmp_path, end) == []
    log, _ = opened(tmp_path, recovery_point=end)
    assert readable(log) == set(sizes)


def test_left_over_files_and_wrong_checkpoints(tmp_path: Path) -> None:
    end, _ = written(tmp_path)
    for name in (
        "00000000000000000000.log.cleaned",
        "00000000000000000000.index.swap",
        "00000000000000000009.log.deleted",
    ):
        (tmp_path / "topic-0" / name).touch()
    findings = found(tmp_path, end, cleaned=end + 1)
    assert [each.kind for each in findings] == ["left over"] * 3 + ["wrong checkpoint"]


def test_deleted_segments_are_one_finding(tmp_path: Path) -> None:
    """Apache Kafka keeps them for a minute: a busy partition has very many."""
    end, _ = written(tmp_path)
    for base in range(5):
        (tmp_path / "topic-0" / f"{base:020}.log.deleted").touch()
    (finding,) = found(tmp_path, end)
    assert (finding.kind, "5 files" in finding.what) == ("left over", True)
    repaired(tmp_path, end)
    assert found(tmp_path, end) == []


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "copies"])
def test_a_crash_after_batches_were_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Segments that were set aside are there still: what is in the log, too, needn't be brought back."""
    end, _ = written(tmp_path, clean=False)
    flip(segments(tmp_path)[0], 70)

    def crash(_: object) -> None:
        raise Crash

    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    with monkeypatch.context() as patched:
        patched.setattr("kohort.log.segment_files.SegmentFiles.delete", crash)
        if not links:
            patched.setattr("pathlib.Path.hardlink_to", unsupported)
        with pytest.raises(Crash):
            opened(tmp_path, clean=False)
    log, _ = opened(tmp_path, clean=False)
    log.append(batch(), now=NOW)
    there = readable(log) | set_aside(tmp_path)
    log.close()
    assert {finding.remedy for finding in found(tmp_path, end)} == {"removed", "brought back"}
    repaired(tmp_path, end)
    assert found(tmp_path, end) == []
    log, _ = opened(tmp_path, recovery_point=end)
    assert readable(log) == there
    assert not set_aside(tmp_path)


def test_a_repair_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end, _ = written(tmp_path)
    flip(segments(tmp_path)[0], 70)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("kohort.log.local_log.write_snapshot", full)
        with pytest.raises(OSError, match="No space left"):
            repaired(tmp_path, end)
    repaired(tmp_path, end)
    assert found(tmp_path, end) == []


def test_a_wrong_index_is_noticed_while_it_is_used(tmp_path: Path) -> None:
    """Each entry of the index points elsewhere; all records are found all the same."""
    end, sizes = written(tmp_path)
    flipped = 0
    for suffix in (".index", ".timeindex"):
        for file in (tmp_path / "topic-0").glob(f"*{suffix}"):
            for position in range(3, file.stat().st_size, 4):
                flip(file, position, 1)
                flipped += 1
    assert flipped
    log, damages = opened(tmp_path, recovery_point=end)
    assert readable(log) == set(sizes)
    for number in range(20):
        answer = log.offset_for_timestamp(NOW + number)
        assert answer is not None
        assert (answer.offset, answer.timestamp) == (number * PER_BATCH, NOW + number)
    assert {damage.kind.value for damage in damages} == {"wrong_index"}
    assert len(damages) <= 2 * len(segments(tmp_path))  # each is made anew once
    log.close()
    assert found(tmp_path, end) == []


def test_a_wrong_index_hides_no_aborted_transaction(tmp_path: Path) -> None:
    """How far a reader has come is looked up in the index."""
    log = Log.open(tmp_path / "topic-0", LogConfig(index_interval_bytes=150), now=NOW, clean=True)
    for number in range(10):
        log.append(batch(3, producer=(number, 0), transactional=True), now=NOW)
        log.append_marker(number, 0, commit=False, coordinator_epoch=0, now=NOW)
    whole = log.aborted_transactions(20, 40, size=1)
    assert whole
    log.close()
    index = segments(tmp_path)[0].with_suffix(".index")
    for position in range(3, index.stat().st_size, 8):
        content = bytearray(index.read_bytes())
        content[position] = 0
        index.write_bytes(content)
    log, found = opened(tmp_path)
    assert set(whole) <= set(log.aborted_transactions(20, 40, size=1))
    assert [damage.kind.value for damage in found] == ["wrong_index"]


def test_an_index_that_was_shortened_is_still_right(tmp_path: Path) -> None:
    end, sizes = written(tmp_path)
    for file in (tmp_path / "topic-0").glob("*.index"):
        file.write_bytes(b"")
    log = Log.open(tmp_path / "topic-0", SMALL, now=NOW, clean=True, recovery_point=end)
    assert readable(log) == set(sizes)
