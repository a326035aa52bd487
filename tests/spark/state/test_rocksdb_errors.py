"""RocksDB's errors, provoked where they can be: only those that are due to a store's files cost it its files."""

from __future__ import annotations

import errno
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from kohort.spark.state import StateError, Store, StoreClosedError, StoreCorruptError
from kohort.spark.state.rocksdb_errors import REMEDIES, state_error

DRAW = random.Random(1)
FILLING = pa.array([DRAW.randbytes(1_000) for _ in range(500)])
ONE = pa.array([b"k"]), pa.array([b"v"])


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    store = Store(tmp_path / "s", "s", 3)
    store.write(*ONE, 7)
    store.close()
    return tmp_path / "s"


def still_there(path: Path) -> bool:
    store = Store(path, "s", 3)
    try:
        return store.position == 7 and store.get_many(ONE[0]).to_pylist() == [b"v"]
    finally:
        store.close()


def test_a_file_that_may_not_grow_spares_what_is_written(written: Path) -> None:
    store = Store(written, "s", 3)
    with limited(resource.RLIMIT_FSIZE, 100_000):
        with pytest.raises(StateError, match=r"File too large; raise the limit .* \(ulimit -f\)") as first:
            store.write(FILLING, FILLING, 8)
        # RocksDB refuses what comes after an error, too.
        with pytest.raises(StateError) as second:
            store.write(*ONE, 9)
        store.close()
    assert not isinstance(first.value, StoreCorruptError) and not isinstance(second.value, StoreCorruptError)
    assert still_there(written)


def test_a_full_disk_spares_what_is_written(written: Path) -> None:
    store = Store(written, "s", 3)
    store.write(FILLING, FILLING, 7)
    newest = max(int(each.name.split(".")[0]) for each in written.iterdir() if each.name[0].isdigit())
    tables = [written / f"{newest + number:06}.sst" for number in range(1, 20)]
    for table in tables:
        table.symlink_to("/dev/full")
    full = r"No space left on device.*; make room on its disk"
    with pytest.raises(StateError, match=full) as caught, store._reading_or_writing():
        store._db.flush()
    assert not isinstance(caught.value, StoreCorruptError)
    store.close()
    for table in tables:
        table.unlink(missing_ok=True)
    assert still_there(written)


def test_too_many_open_files_spare_what_is_written(written: Path) -> None:
    with ExitStack() as stack:
        highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
        while stack.enter_context(Path("/dev/null").open("rb")).fileno() < highest:  # the limit is one of numbers
            pass
        met = 0
        for more in range(1, 9):  # wherever in opening the limit is met
            with limited(resource.RLIMIT_NOFILE, highest + more):
                try:
                    Store(written, "s", 3).close()
                except StateError as error:
                    assert "ulimit -n" in str(error)
                    met += 1
    assert met and still_there(written)


_HOLDER = """
import sys
from pathlib import Path
from kohort.spark.state import Store
store = Store(Path(sys.argv[1]), "s", 3)
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def test_a_store_that_another_process_has_open_is_left_to_it(written: Path) -> None:
    command = [sys.executable, "-c", _HOLDER, str(written)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StateError, match="Resource temporarily unavailable; it is open already"):
            Store(written, "s", 3)
        holder.stdin.close()
        assert holder.wait(20) == 0
    assert still_there(written)


_OTHER_USER = """
import os, sys
from pathlib import Path
from kohort.spark.state import StateError, Store, StoreCorruptError
if not os.getuid():
    os.setuid(65534)
try:
    Store(Path(sys.argv[1]), "s", 3)
except StateError as error:
    assert not isinstance(error, StoreCorruptError)
    print(error)
"""


def test_a_directory_of_another_user_is_left_as_it_is(written: Path) -> None:
    written.chmod(0o500)
    said = subprocess.run([sys.executable, "-c", _OTHER_USER, str(written)], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"store s in {written} can't be used: ")
    assert "Permission denied" in said.stdout and "let the user who runs this own it" in said.stdout
    written.chmod(0o700)
    assert still_there(written)


def test_a_damaged_file_is_to_blame(written: Path) -> None:
    store = Store(written, "s", 3)
    store._db.flush()
    store.close()
    for table in written.glob("*.sst"):
        table.write_bytes(bytes(table.stat().st_size))
    store = Store(written, "s", 3)
    assert store.position is None
    store.close()


# What can't be provoked here, as RocksDB and rocksdict write it.


@pytest.mark.parametrize("number", REMEDIES)
def test_what_the_operating_system_says_of_the_machine(number: int) -> None:
    said = os.strerror(number)
    for error in (
        Exception(f"IO error: {said}: While appending to file: /s/000004.log: {said}"),
        Exception(f"IO error: While opening: /s/CURRENT: {said}"),
        Exception(f"Invalid argument: Found options incompatible with filesystem: IO error: /s/CURRENT: {said}"),
        Exception(f"IO error: While appending to file: /s/1.log: {said}; IO error: Writer has previous error."),
        Exception(f"{said} (os error {number})"),
        OSError(f"{said} (os error {number})"),
        OSError(number, said),
    ):
        found = state_error(error, "store s")
        assert type(found) is StateError and str(found) == f"store s can't be used: {error}; {REMEDIES[number]}"


@pytest.mark.parametrize(
    "text",
    [
        "IO error: Writer has previous error.",
        "Resource busy: ",
        "Shutdown in progress: Database shutdown",
        "Operation failed. Try again.: ",
    ],
)
def test_statuses_that_say_nothing_of_the_files(text: str) -> None:
    assert type(state_error(Exception(text), "store s")) is StateError


@pytest.mark.parametrize(
    "text",
    [
        "Corruption: block checksum mismatch: stored = 4235814314, computed = 7048237, type = 4  in /s/9.sst offset 0",
        "Corruption: Corruption: IO error: No such file or directory: While open a file for random read: /s/9.sst: "
        "No such file or directory  The file /s/MANIFEST-000019 may be corrupted.",
        "Corruption: CURRENT file corrupted",
        f"IO error: While pread offset 0 len 53: /s/9.sst: {os.strerror(errno.EIO)}",
        "Corruption: /Permission denied/No space left on device/000009.sst",
        "Invalid argument: leveldb.BytewiseComparator: does not match existing comparator",
        "what nobody has seen yet",
    ],
)
def test_anything_else_is_due_to_the_files(text: str) -> None:
    found = state_error(Exception(text), "store s")
    assert isinstance(found, StoreCorruptError) and text in str(found)


def test_what_is_not_of_rocksdb_is_left_alone() -> None:
    for error in (KeyError("k"), ValueError(), KeyboardInterrupt()):
        assert state_error(error, "store s") is None
    closed = StoreClosedError("store s is closed")
    assert state_error(closed, "store s") is closed
