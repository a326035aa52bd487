from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from rocksdict import Options, Rdict

from kohort.spark.state import StateError, Store, StoreClosedError, StoreCorruptError
from kohort.spark.state.rocksdb import StoreMemory, holds_up_writes
from kohort.spark.state.rocksdb_rows import SortedRows, sorted_by_key
from kohort.spark.state.row_cache import RowCache

from ...waiting import eventually

ALL = os.environ.get("KOHORT_ALL_FAULTS") == "1"


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def many(count: int, size: int = 20) -> tuple[pa.Array, pa.Array]:
    numbers = random.Random(1).sample(range(count), count)
    return binary(*(b"key %06d" % n for n in numbers)), binary(*(b"%d" % n * size for n in numbers))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "s", "s", 3)
    yield store
    store.close()


def value_of(store: Store, key: bytes) -> bytes | None:
    value: bytes | None = store.get_many(binary(key))[0].as_py()
    return value


def reopened(store: Store) -> Store:
    store.close()
    return Store(store.path, store.name, store.partition)


def test_what_is_written_is_read_with_its_position_also_after_reopening(store: Store) -> None:
    assert store.position is None and store.scan().num_rows == 0
    store.write(binary(b"b", b"a", b"", None), binary(b"2", b"1", b"0", b"nowhere"), 4)
    assert store.get_many(binary(b"a", None, b"x", b"b", b"a", b"")).to_pylist() == [b"1", None, None, b"2", b"1", b"0"]
    store = reopened(store)
    assert store.position == 4 and dict(store.positions) == {3: 4}
    assert store.scan().to_pylist() == [{"key": k, "value": v} for k, v in ((b"", b"0"), (b"a", b"1"), (b"b", b"2"))]
    assert value_of(store, b"a") == b"1" and value_of(store, b"c") is None
    store.close()


def test_the_last_value_of_a_key_in_a_write_counts(store: Store) -> None:
    store.write(binary(b"k", b"k", b"l", b"l", b"m", b"m"), binary(b"1", b"2", b"3", None, None, b"4"), 6)
    assert store.get_many(binary(b"k", b"l", b"m")).to_pylist() == [b"2", None, b"4"]
    store.write(binary(b"k"), binary(None), 7)
    assert value_of(store, b"k") is None and store.position == 7


def test_what_couldnt_be_kept_in_memory_is_read_from_files(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(binary(b"a", b"b"), binary(b"1", b"2"), 2, read_again=True)

    def fail(rows: RowCache, written: SortedRows) -> None:
        raise MemoryError

    monkeypatch.setattr(RowCache, "put", fail)
    with pytest.raises(MemoryError):
        store.write(binary(b"a", b"b"), binary(b"3", None), 4, read_again=True)
    assert store.get_many(binary(b"a", b"b")).to_pylist() == [b"3", None] and store.position == 4


def test_text_and_chunked_arrays(store: Store) -> None:
    store.write(pa.chunked_array([pa.array(["ä"]), pa.array(["b"])]), pa.array(["1", "2"]), 2)
    assert store.get_many(pa.chunked_array([["ä"], ["b"]])).to_pylist() == [b"1", b"2"]
    assert store.get_many(pa.array([], pa.binary())).to_pylist() == []
    with pytest.raises(ValueError, match="1 keys and 2 values"):
        store.write(pa.array(["a"]), pa.array(["1", "2"]), 3)


def test_scans_have_bounds_and_limits(store: Store) -> None:
    keys, values = many(25_000)
    store.write(keys, values, 25_000)
    assert store.scan(b"key 000010", b"key 000013")["key"].to_pylist() == [b"key 00001%d" % n for n in range(3)]
    assert store.scan(b"key 000010", None, 2)["key"].to_pylist() == [b"key 000010", b"key 000011"]
    assert store.scan(b"x").num_rows == 0 and store.scan(b"b", b"a").num_rows == 0 and store.scan(limit=0).num_rows == 0
    assert store.scan().num_rows == 25_000
    assert store.scan(b"key 000001", b"key 024000")["key"].to_pylist() == sorted(keys.to_pylist())[1:24_000]


@pytest.mark.parametrize("most", [1, 5, 1_000])
def test_several_ranges_are_scanned_at_once_and_gone_on_with(store: Store, most: int) -> None:
    rows = {b"a1": b"1", b"a2": b"2", b"b": b"3", b"c1": b"4", b"c2": b"5"}
    store.write(binary(*rows), binary(*rows.values()), 5)
    ranges = [(b"a", b"b"), (b"x", b"z"), (b"c2", b"d"), (b"a2", b"c")]
    found: list[tuple[int, bytes, bytes]] = []
    first, start = 0, ranges[0][0]
    while True:
        starts = [start, *(each for each, _ in ranges[first + 1 :])]
        scanned = store.scan_ranges(starts, [end for _, end in ranges[first:]], most)
        numbers = [first + number for number in scanned.ranges.to_pylist()]
        found += zip(numbers, scanned.keys.to_pylist(), scanned.values.to_pylist(), strict=True)
        if scanned.rest is None:
            break
        assert len(numbers) >= 1
        first, start = first + scanned.rest[0], scanned.rest[1]
    wanted = [(number, key) for number, (start, end) in enumerate(ranges) for key in rows if start <= key < end]
    assert found == [(number, key, rows[key]) for number, key in wanted]


@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_ranges_are_scanned_with_the_rows_next_to_them(store: Store, most: int) -> None:
    """Of each range: its bounds, and those of what is next to it, beside all rows one by one."""
    rows = {b"a%d" % number: b"%d" % number for number in range(0, 8, 2)} | {b"b": b"b"}
    store.write(binary(*rows), binary(*rows.values()), 5)
    bounds = [b"a", b"a1", b"a2", b"a7", b"b"]
    nexts = [(None, None), (b"a", b"b"), (b"a2", None), (b"a2", b"a4")]
    ranges = [(start, end, *each) for start in bounds for end in bounds if start <= end for each in nexts]
    wanted = []
    for number, (start, end, first, last) in enumerate(ranges):
        before = [key for key in rows if first is not None and first <= key < start]
        after = [key for key in rows if last is not None and end <= key < last]
        own = [key for key in rows if start <= key < end]
        wanted += [(number, key) for key in (*before[-1:], *own, *after[:1])]
    found: list[tuple[int, bytes]] = []
    at = 0
    while True:
        starts, ends, befores, afters = zip(*ranges[at:], strict=True)
        scanned = store.scan_ranges(starts, ends, most, befores, afters)
        found += [
            (at + number, key) for number, key in zip(scanned.ranges.to_pylist(), scanned.keys.to_pylist(), strict=True)
        ]
        if scanned.rest is None:
            break
        at += scanned.rest[0]
        ranges[at] = (scanned.rest[1], ranges[at][1], None, ranges[at][3])
    assert found == wanted


def test_clear(store: Store) -> None:
    store.set_topic_id("first")
    store.write(binary(b"a"), binary(b"1"), 1)
    assert store.topic_id == "first"
    store.clear("second")
    assert (store.position, store.topic_id, store.scan().num_rows) == (None, "second", 0)
    store = reopened(store)
    assert (store.position, store.topic_id) == (None, "second")
    store.close()


def test_clearing_that_failed_can_be_tried_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise Exception("IO error: No space left on device: While open a file for appending: /x/000004.log")

    with monkeypatch.context() as machine:
        machine.setattr("kohort.spark.state.store.open_rocksdb", full)
        for _ in range(2):
            with pytest.raises(StateError, match="make room"):
                store.clear()
        with pytest.raises(StateError, match="clear it once more"):
            store.scan()
    store.clear("topic")
    assert store.topic_id == "topic" and store.scan().num_rows == 0


def test_a_store_is_closed_after_clearing_it_failed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.state.store.open_rocksdb", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.clear()
    store.close()
    with pytest.raises(StoreClosedError):
        store.scan()


def test_a_store_of_a_global_table_has_a_position_for_each_partition(tmp_path: Path) -> None:
    store = Store(tmp_path, "g", None)
    store.write(binary(b"a"), binary(b"1"), 5, 0)
    store.write(binary(b"b"), binary(b"2"), 7, 1)
    with pytest.raises(ValueError, match="which one"):
        store.write(binary(b"b"), binary(b"2"), 7)
    store = reopened(store)
    assert dict(store.positions) == {0: 5, 1: 7} and store.position is None
    store.close()


def test_the_checkpoint_is_not_a_row(store: Store) -> None:
    store.write(binary(b"\xff\xffkohort", b"a"), binary(b"nonsense", b"1"), 2)
    assert store.get_many(binary(b"\xff\xffkohort", b"a")).to_pylist() == [None, b"1"]
    assert value_of(store, b"\xff\xffkohort") is None
    assert store.scan()["key"].to_pylist() == [b"a"]
    assert reopened(store).position == 2


# Files that are ingested.


def test_what_is_ingested_counts_as_written(store: Store) -> None:
    store.write(binary(b"a", b"b", b"c"), binary(b"1", b"2", b"3"), 3)
    store.ingest(sorted_by_key(binary(b"b", b"d", None, b"c", b"d"), binary(None, b"4", b"nowhere", b"5", b"6")), 8)
    assert store.scan().to_pylist() == [{"key": k, "value": v} for k, v in ((b"a", b"1"), (b"c", b"5"), (b"d", b"6"))]
    store.write(binary(b"d"), binary(None), 9)
    store = reopened(store)
    assert store.position == 9 and store.get_many(binary(b"b", b"d", b"c")).to_pylist() == [None, None, b"5"]
    store.close()


def test_the_checkpoint_of_an_ingested_file_is_among_its_rows_and_none_of_them(store: Store) -> None:
    store.ingest(sorted_by_key(binary(b"\xff\xff\xff", b"\xff\xffkohort", b"a"), binary(b"2", b"nonsense", b"1")), 3)
    assert store.scan()["key"].to_pylist() == [b"a", b"\xff\xff\xff"]
    store = reopened(store)
    assert store.position == 3 and value_of(store, b"\xff\xff\xff") == b"2"
    store.close()


def test_many_rows_are_ingested(store: Store) -> None:
    keys, values = many(25_000)
    store.ingest(sorted_by_key(keys, values), 25_000)
    assert store.scan()["key"].to_pylist() == sorted(keys.to_pylist())
    assert store.get_many(keys).equals(values)
    assert [each.name for each in store.path.glob("ingested*")] == []


def files_on_level_0(store: Store) -> int:
    assert store._db is not None
    count: int | None = store._db.property_int_value("rocksdb.num-files-at-level0")
    return count or 0


def test_files_that_are_ingested_are_compacted_together_after_the_next_write(store: Store) -> None:
    store.write(binary(b"a"), binary(b"0"), 1)
    store._db.flush()
    for position in range(2, 12):
        store.ingest(sorted_by_key(binary(b"a", b"b"), binary(b"%d" % position, b"1")), position)
    assert files_on_level_0(store) == 11
    store.write(binary(b"b"), binary(None), 12)
    eventually(lambda: files_on_level_0(store) == 0)
    assert store.scan().to_pylist() == [{"key": b"a", "value": b"11"}]


@pytest.fixture
def behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that has so many files on level 0 that RocksDB slows down writes; it doesn't compact them."""
    assert store._db is not None
    store._db.set_options({"disable_auto_compactions": "true"})
    for position in range(1, 5):  # the first goes to the last level, as nothing is there
        store.ingest(sorted_by_key(binary(b"a", b"b"), binary(b"%d" % position, b"1")), position)
    monkeypatch.setattr("kohort.spark.state.rocksdb.SLOWDOWN_FILES", 3)
    return store


def write_more(store: Store, how: str) -> None:
    rows = sorted_by_key(binary(b"a"), binary(b"more"))
    if how == "write":
        store.write(*rows, 5)
    else:
        store.ingest(rows, 5)


@pytest.mark.parametrize("how", ["write", "ingest"])
def test_a_write_waits_until_compaction_has_caught_up(behind: Store, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    sleep, waited = time.sleep, []

    def compact(seconds: float) -> None:
        if not waited:
            assert behind._db is not None and behind.position == 4
            behind._db.set_options({"disable_auto_compactions": "false", "level0_file_num_compaction_trigger": "2"})
        waited.append(seconds)
        sleep(seconds)

    with monkeypatch.context() as machine:
        machine.setattr(time, "sleep", compact)
        write_more(behind, how)
    assert waited and files_on_level_0(behind) < 3
    assert behind.position == 5 and value_of(behind, b"a") == b"more"


@pytest.mark.parametrize("how", ["write", "ingest"])
def test_closing_does_not_wait_for_compaction(behind: Store, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    closing = threading.Thread(target=behind.close)
    sleep = time.sleep

    def close_meanwhile(seconds: float) -> None:
        if closing.ident is None:
            closing.start()
        sleep(seconds)

    with monkeypatch.context() as machine, pytest.raises(StoreClosedError):
        machine.setattr(time, "sleep", close_meanwhile)
        write_more(behind, how)
    closing.join()


@pytest.mark.parametrize("how", ["write", "ingest"])
def test_a_write_does_not_wait_for_ever_for_compaction(
    behind: Store, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("kohort.spark.state.store._COMPACTION_S", 0.05)
    write_more(behind, how)
    assert behind.position == 5 and value_of(behind, b"a") == b"more"


@pytest.mark.parametrize(
    ("files", "stopped", "errors", "held_up"),
    [(19, 0, 0, False), (20, 0, 0, True), (0, 1, 0, True), (20, 0, 1, False), (0, 1, 1, False)],
)
def test_writes_are_held_up_unless_compacting_failed(files: int, stopped: int, errors: int, held_up: bool) -> None:
    values = {"num-files-at-level0": files, "is-write-stopped": stopped, "background-errors": errors}

    class Database:
        def property_int_value(self, name: str) -> int:
            return values[name.removeprefix("rocksdb.")]

    assert holds_up_writes(cast(Rdict, Database())) == held_up


@pytest.mark.parametrize("step", ["put_rows", "ingest_sst_file"])
def test_an_ingest_that_fails_has_not_happened(store: Store, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*_: object) -> None:
        raise Exception("IO error: No space left on device: While appending to file: /x/ingested.sst")

    store.write(binary(b"a"), binary(b"1"), 1)
    with monkeypatch.context() as machine:
        machine.setattr(f"kohort.spark.state.store.{step}", full)
        with pytest.raises(StateError, match="make room"):
            store.ingest(sorted_by_key(binary(b"a"), binary(b"2")), 2)
    assert store.position == 1 and value_of(store, b"a") == b"1"
    store.ingest(sorted_by_key(binary(b"a"), binary(b"3")), 3)
    assert store.position == 3 and value_of(store, b"a") == b"3"


def test_a_process_that_dies_while_it_ingests_leaves_the_store_as_it_was(store: Store) -> None:
    store.ingest(sorted_by_key(binary(b"a"), binary(b"1")), 1)
    (file,) = store.path.glob("*.sst")
    store.close()
    os.link(file, store.path / "ingested.sst")  # as if it had died before the file's first name was gone
    store = Store(store.path, store.name, store.partition)
    store.ingest(sorted_by_key(binary(b"b"), binary(b"2")), 2)
    assert store.scan()["value"].to_pylist() == [b"1", b"2"]
    store.close()
    (store.path / "ingested.sst").write_bytes(b"half a file")
    store = Store(store.path, store.name, store.partition)
    assert store.position == 2 and not (store.path / "ingested.sst").exists()
    store.close()


def test_closing_does_not_wait_for_an_ingest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, values = many(10_000)
    pieces = []

    def close_meanwhile(*_: object) -> None:
        pieces.append(threading.Thread(target=store.close))
        pieces[-1].start()
        eventually(lambda: store.closed)

    monkeypatch.setattr("kohort.spark.state.store.put_rows", close_meanwhile)
    with pytest.raises(StoreClosedError):
        store.ingest(sorted_by_key(keys, values), 1)
    assert len(pieces) == 1
    pieces[0].join()


# Files on disk.


def filled(path: Path, partition: int | None = 3) -> Path:
    store = Store(path, "s", partition)
    for number in range(3):
        keys, _ = many(5_000)
        store.write(keys, binary(*(b"%d" % number * 40 for _ in range(5_000))), 5_000 * (number + 1), 3)
        store._db.flush()
    store.write(binary(b"tail"), binary(b"2"), 15_001, 3)
    store.close()
    return path


def test_a_corrupt_file_is_wiped_or_an_error_when_it_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = filled(tmp_path / "good")
    draw = random.Random(7)
    kinds = {"deleted": 0, "cut": 0, "garbage": 0}
    for file in sorted(home.iterdir()):
        if not file.is_file() or file.name == "LOCK" or file.name.startswith("LOG"):
            continue
        # In the usual run each file is corrupted in one way, drawn at random.
        for kind in kinds if ALL else [draw.choice(list(kinds))]:
            copy = tmp_path / "copy"
            shutil.copytree(home, copy)
            victim = copy / file.name
            data = victim.read_bytes()
            if kind == "deleted":
                victim.unlink()
            elif kind == "cut":
                victim.write_bytes(data[: len(data) // 2])
            else:
                at = draw.randrange(max(1, len(data) // 2))
                victim.write_bytes(data[:at] + draw.randbytes(min(len(data) - at, 2_000)) + data[at + 2_000 :])
            store = Store(copy, "s", 3)
            try:
                rows = store.scan()
                # All of it, up to its position, which may be an earlier one; or nothing.
                position = store.position or 0
                assert rows.num_rows == (5_000 if position else 0) + position % 5_000, (file, kind)
                if position:
                    assert {value[:1] for value in rows["value"].to_pylist()} == {b"%d" % min(2, position // 5_000 - 1)}
            except StoreCorruptError:
                kinds[kind] += 1
                store = reopened(store)
                assert store.position is None and store.scan().num_rows == 0
            store.write(binary(b"k"), binary(b"v"), 1)
            assert value_of(store, b"k") == b"v"
            store.close()
            shutil.rmtree(copy)
    assert "is wiped, to be restored from its changelog" in caplog.text


@pytest.mark.parametrize(
    "checkpoint",
    [
        b"nonsense",
        b'{"format":0,"origin":"","positions":{"3":1}}',
        b'{"format":1,"origin":"","positions":{"4":1}}',
        None,
    ],
)
def test_a_store_without_a_valid_checkpoint_is_wiped(tmp_path: Path, checkpoint: bytes | None) -> None:
    db = Rdict(str(tmp_path), Options(raw_mode=True))
    db[b"key"] = b"value"
    if checkpoint is not None:
        db[b"\xff\xffkohort"] = checkpoint
    db.close()
    store = Store(tmp_path, "s", 3)
    assert store.position is None and value_of(store, b"key") is None
    store.close()


def test_the_format_of_the_checkpoint(tmp_path: Path) -> None:
    db = Rdict(str(tmp_path), Options(raw_mode=True))
    db[b"\xff\xffkohort"] = b'{"format":1,"origin":"an id","positions":{"3":7}}'
    db.close()
    store = Store(tmp_path, "s", 3)
    assert (store.topic_id, store.position) == ("an id", 7)
    store.close()


def test_other_files_in_its_place_are_wiped(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("what is this?")
    store = Store(tmp_path / "file", "s", 3)
    store.write(binary(b"a"), binary(b"1"), 1)
    store.close()
    db = Rdict(str(tmp_path / "other"))  # whose keys are encoded
    db["key"] = 1
    db.close()
    store = Store(tmp_path / "other", "s", 3)
    assert store.position is None and store.scan().num_rows == 0
    store.close()


def test_a_store_that_is_open_is_not_wiped(store: Store) -> None:
    store.write(binary(b"a"), binary(b"1"), 1)
    with pytest.raises(StateError, match="lock"):
        Store(store.path, "s", 3)
    assert value_of(store, b"a") == b"1"


_WRITER = """
import sys
from pathlib import Path
import pyarrow as pa
from kohort.spark.state.rocksdb_rows import SortedRows
from kohort.spark.state.store import Store
store = Store(Path(sys.argv[1]), "s", 3)
number = store.position or 0
while True:
    keys = [b"key %05d" % n for n in range(3000)]
    rows = SortedRows(pa.array(keys), pa.array([b"%d" % number] * 3000))
    if number % 3:
        store.ingest(rows, number + 1)
    else:
        store.write(*rows, number + 1)
    number += 1
    print(number, flush=True)
"""


def test_a_store_whose_process_is_killed_has_only_complete_writes(tmp_path: Path) -> None:
    written = 0
    for round_number in range(3 if ALL else 2):
        child = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert child.stdout is not None
        for _ in range(5 + 7 * round_number):
            written = int(child.stdout.readline())
        time.sleep(0.004 * round_number)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        written = int(rest[-1]) if rest and rest[-1].isdecimal() else written
        store = Store(tmp_path, "s", 3)
        assert store.position is not None and store.position >= written
        assert set(store.scan()["value"].to_pylist()) == {b"%d" % (store.position - 1)}
        store.close()


# Threads.


def test_readers_and_a_writer_get_results_or_a_clean_error_while_it_is_closed(tmp_path: Path) -> None:
    keys, values = many(5_000)
    done = 0
    for round_number in range(5):
        store = Store(tmp_path, "s", 3)
        store.write(keys, values, 1)
        failures: list[BaseException] = []

        def read(store: Store = store, failures: list[BaseException] = failures) -> None:
            nonlocal done
            try:
                while True:
                    assert store.get_many(keys.slice(0, 500)).null_count == 0
                    assert store.scan(limit=200).num_rows == 200
                    assert store.scan().num_rows == 5_000
                    done += 1
            except StoreClosedError:
                pass
            except BaseException as error:
                failures.append(error)

        def write(store: Store = store, failures: list[BaseException] = failures) -> None:
            try:
                for number in range(1_000_000):
                    store.write(keys, values, number)
            except StoreClosedError:
                pass
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for work in (read, read, read, write)]
        for thread in threads:
            thread.start()
        time.sleep(0.05 + 0.03 * round_number)
        if round_number == 4:
            eventually(lambda: done, what="a reader has read")
        store.close()
        store.close()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert not failures
        calls = store.scan, store.clear, partial(value_of, store, b"a"), partial(store.write, keys, values, 1)
        for call in calls:
            with pytest.raises(StoreClosedError, match="store s is closed"):
                call()
    assert done


def test_readers_wait_while_it_is_cleared(store: Store) -> None:
    keys, values = many(2_000)
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                assert store.get_many(keys).null_count in (0, 2_000)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(5):
        store.write(keys, values, number)
        store.clear()
    stop.set()
    for thread in threads:
        thread.join(20)
    assert not failures


def test_stores_share_their_memory(tmp_path: Path) -> None:
    memory = StoreMemory(cache=8 << 20, write_buffers=2 << 20)
    stores = [Store(tmp_path / str(number), "s", number, memory) for number in range(6)]
    keys, values = many(3_000, 50)
    for _ in range(4):
        for store in stores:
            store.write(keys, values, 1)

    def little_is_left() -> bool:
        for store in stores:
            store.write(keys[:1], values[:1], 1)  # RocksDB looks at how much there is to flush when it writes
        return memory.write_buffers.get_usage() <= 8 << 20

    # Of some 15 MiB that were written. Flushing goes on in the background, and may lag.
    eventually(little_is_left, what="the rest is flushed")
    assert 0 < memory.cache.get_usage() <= 16 << 20
    for store in stores:
        assert store.get_many(keys) == values
        store.close()


def test_wiping_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path)
    (tmp_path / "CURRENT").write_bytes(b"nonsense")
    with caplog.at_level(logging.WARNING):
        Store(tmp_path, "delays", 3).close()
    assert f"store delays in {tmp_path} is wiped" in caplog.text
