"""A store against a dict, with crashes: it always equals the changelog up to its position."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kohort.spark.state import Store, StoreCorruptError
from kohort.spark.state.rocksdb_rows import sorted_by_key

KEYS = st.one_of(st.sampled_from([b"", b"a", b"b", b"b\0", b"c", b"\xff", b"\xff\xff"]), st.binary(max_size=3))
VALUES = st.one_of(st.none(), st.binary(max_size=30))


def copy_between_compactions(path: Path, copy: Path) -> None:
    """Copies an open store; anew if RocksDB, which compacts in threads of its own, adds or deletes a file meanwhile."""
    while True:
        before = {each.name for each in path.iterdir()}
        with contextlib.suppress(shutil.Error):
            shutil.copytree(path, copy)
            if {each.name for each in path.iterdir()} == before:
                return
        shutil.rmtree(copy)


class StoreMachine(RuleBasedStateMachine):
    """The changelog is a list; the store should have what its first `position` records make."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="kohort-store-"))
        self.log: list[tuple[bytes, bytes | None]] = []

    @initialize()
    def open(self) -> None:
        self.store = Store(self.home / "s", "s", 0)

    def expected(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for key, value in self.log[: self.store.position or 0]:
            found.pop(key, None)
            if value is not None:
                found[key] = value
        return found

    @rule(
        records=st.lists(st.tuples(KEYS, VALUES), max_size=12),
        way=st.sampled_from(["read again", "not read again", "as a file"]),
    )
    def write(self, records: list[tuple[bytes, bytes | None]], way: str) -> None:
        position = self.store.position or 0
        del self.log[position:]
        self.log += records
        keys, values = pa.array([k for k, _ in records], pa.binary()), pa.array([v for _, v in records], pa.binary())
        if way == "as a file":
            self.store.ingest(sorted_by_key(keys, values), len(self.log))
        else:
            self.store.write(keys, values, len(self.log), read_again=way == "read again")

    @rule()
    def flush(self) -> None:
        self.store._db.flush()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @rule()
    def clear(self) -> None:
        self.store.clear()
        self.log.clear()

    # How many files there are, and of what size, depends on when RocksDB compacts: so a rule draws a share, not a size.

    @rule(kept=st.floats(0, 1))
    def crash_of_the_machine(self, kept: float) -> None:
        """Loses the end of the write-ahead log: the store is at an earlier position."""
        copy = self.home / "copy"
        copy_between_compactions(self.store.path, copy)
        self.store.close()
        shutil.rmtree(self.store.path)
        copy.rename(self.store.path)
        for wal in self.store.path.glob("*.log"):
            os.truncate(wal, int(kept * wal.stat().st_size))
        before = self.store.position or 0
        self.open()
        position = self.store.position or 0
        assert position <= before

    @rule(which=st.floats(0, 1, exclude_max=True))
    def lose_a_file(self, which: float) -> None:
        self.store.close()
        there = [each for each in self.store.path.iterdir() if each.is_file() and each.suffix in (".sst", "")]
        files = sorted({each.name for each in there} - {"LOG", "LOCK", "IDENTITY"})
        (self.store.path / files[int(which * len(files))]).unlink()
        self.open()
        try:
            rows = self.store.scan()
        except StoreCorruptError:
            self.store.close()
            self.open()
            rows = self.store.scan()
        if self.store.position is None and not rows.num_rows:
            self.log.clear()

    @invariant()
    def it_is_the_changelog_up_to_its_position(self) -> None:
        if not hasattr(self, "store"):
            return
        expected = self.expected()
        rows = self.store.scan()
        assert list(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)) == sorted(expected.items())
        keys = [b"", b"a", b"b", b"\xff\xff", *expected]
        assert self.store.get_many(pa.array(keys, pa.binary())).to_pylist() == [expected.get(key) for key in keys]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.home)


TestStoreModel = StoreMachine.TestCase
TestStoreModel.settings = settings(
    max_examples=100 if os.environ.get("KOHORT_ALL_FAULTS") == "1" else 8, stateful_step_count=20
)
