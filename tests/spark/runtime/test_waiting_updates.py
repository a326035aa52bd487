"""Groups that are written once in a time at most, epoch by epoch, beside a model of one group after the other."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.epoch import ROWS_SCHEMA
from kohort.spark.runtime.subtopology_plan import StoreOutput, WaitingStore
from kohort.spark.runtime.waiting_updates import Updates, updates_due
from kohort.spark.runtime.window_closing import Windows, window_text

EVERY = 10
WAITING = WaitingStore("counts-waiting", "waiting-changelog", EVERY)
COUNTS = StoreOutput("counts", "changelog", outputs=("out",), waiting=WAITING)
Key = tuple[int, str]
"""A window's start, and a name."""


class Epoch(NamedTuple):
    """Changed groups, with the times of their changes; and how far stream time is afterwards."""

    changed: dict[Key, int | None]
    now: int | None


class Task:
    """A task's stores, and what it has written."""

    def __init__(self, output: StoreOutput = COUNTS) -> None:
        self._output = output
        self._stores: dict[str, dict[bytes, bytes]] = {"counts": {}, WAITING.store: {}}
        self._now: int | None = None

    def run(self, epoch: Epoch, n: int) -> list[tuple[Key, int, int | None]]:
        """What is written in an epoch that gives all changed groups this value: (group, value, time)."""
        rows = pa.table(
            {
                "key": pa.array(map(key, epoch.changed), pa.binary()),
                "value": pa.array([b'{"n":%d,"state":{}}' % n] * len(epoch.changed), pa.binary()),
                "partition": pa.array([3] * len(epoch.changed), pa.int32()),
                "timestamp": pa.array(epoch.changed.values(), pa.int64()),
            },
            schema=ROWS_SCHEMA.remove(ROWS_SCHEMA.get_field_index("route")),
        )
        made = updates_due(self._output, WAITING, 3, rows, (self._now, epoch.now), self._scan, self._lookup)
        self._commit(rows, made, epoch.now)
        return [(group(row["key"]), json.loads(row["value"])["n"], row["timestamp"]) for row in made.rows.to_pylist()]

    @property
    def waits(self) -> int:
        """How many rows the store of those that wait has."""
        return len(self._stores[WAITING.store])

    def _commit(self, rows: pa.Table, made: Updates, now: int | None) -> None:
        self._stores["counts"] |= dict(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))
        for row in made.waiting.to_pylist():
            if row["value"] is None:
                del self._stores[WAITING.store][row["key"]]  # nothing is deleted that isn't there
            else:
                self._stores[WAITING.store][row["key"]] = row["value"]
        if self._output.windows is not None and (forgotten := self._output.windows.expiring(self._now, now)):
            counts = self._stores["counts"]
            self._stores["counts"] = {
                each: value for each, value in counts.items() if not forgotten[0] <= each < forgotten[1]
            }
        self._now = now

    def _scan(self, store: str, partition: int, start: bytes, end: bytes) -> pa.Table:
        found = sorted((each, value) for each, value in self._stores[store].items() if start <= each < end)
        keys, values = ([each[place] for each in found] for place in (0, 1))
        return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})

    def _lookup(self, store: str, partition: int, keys: pa.Array) -> pa.Array:
        return pa.array([self._stores[store].get(each) for each in keys.to_pylist()], pa.binary())


def key(of: Key) -> bytes:
    return json.dumps({"window": window_text(of[0]), "k": of[1]}, separators=(",", ":"), ensure_ascii=False).encode()


def group(text: bytes) -> Key:
    found: dict[str, Any] = json.loads(text)
    return next(start for start in range(100) if window_text(start) == found["window"]), found["k"]


def test_a_group_waits_from_its_first_change_on_and_is_written_as_it_is_then() -> None:
    task, a, b = Task(), (0, "a"), (0, 'ü"}')
    assert task.run(Epoch({a: 3}, 3), 1) == []
    assert task.run(Epoch({a: 9, b: 8}, 12), 2) == []  # doesn't begin anew
    assert task.run(Epoch({}, 13), 3) == [(a, 2, 13)]
    assert task.run(Epoch({a: 17}, 17), 4) == []
    assert task.run(Epoch({a: 30}, 30), 5) == [(b, 2, 18), (a, 5, 27)]
    assert task.run(Epoch({a: 30}, 40), 6) == [(a, 6, 40)] and task.waits == 0


def test_a_late_change_waits_from_when_it_was_read() -> None:
    task, a = Task(), (0, "a")
    assert task.run(Epoch({a: 10}, 20), 1) == [(a, 1, 20)]
    assert task.run(Epoch({a: 11}, 29), 2) == []
    assert task.run(Epoch({}, 30), 3) == [(a, 2, 30)]


def test_without_any_time_nothing_waits() -> None:
    task, a = Task(), (0, "a")
    assert task.run(Epoch({a: None}, None), 1) == [(a, 1, None)] and task.waits == 0
    assert task.run(Epoch({a: None}, 5), 2) == []
    assert task.run(Epoch({}, 15), 3) == [(a, 2, 15)]


def test_what_became_due_while_a_program_wrote_at_once_is_written_late() -> None:
    task, a = Task(), (0, "a")
    assert task.run(Epoch({a: 3}, 3), 1) == []
    task._now = 50
    assert task.run(Epoch({a: 51}, 51), 2) == [(a, 2, 13)] and task.waits == 0


def test_what_is_forgotten_is_written_before() -> None:
    task, a, b = Task(COUNTS_OF_WINDOWS), (0, "a"), (2, "b")
    assert task.run(Epoch({a: 5, b: 5}, 6), 1) == []
    assert task.run(Epoch({a: 7, b: 8}, 8), 2) == [(a, 2, 8)]
    assert task.run(Epoch({}, 10), 3) == [(b, 2, 10)] and task.waits == 0


COUNTS_OF_WINDOWS = StoreOutput("counts", "changelog", Windows(4, 0, 8), outputs=("out",), waiting=WAITING)
KEYS = st.tuples(st.integers(0, 3), st.sampled_from("ab"))
TIMES = st.none() | st.integers(0, 40)
EPOCHS = st.lists(st.tuples(st.dictionaries(KEYS, TIMES, max_size=4), TIMES), max_size=12)


@settings(max_examples=200)
@given(EPOCHS)
def test_no_group_comes_twice_in_the_time_and_no_change_is_lost(
    some: list[tuple[dict[Key, int | None], int | None]],
) -> None:
    task = Task()
    now: int | None = None
    waits: dict[Key, int] = {}
    values: dict[Key, int] = {}
    last: dict[Key, int] = {}
    for n, (changed, time) in enumerate(some):
        before, now = now, max((each for each in (now, time) if each is not None), default=None)
        changed = {each: at if at is None or now is None or at <= now else now for each, at in changed.items()}
        written = task.run(Epoch(changed, now), n)
        values |= dict.fromkeys(changed, n)
        if now is None:
            assert sorted(each for each, *_ in written) == sorted(changed)
            continue
        for each, at in changed.items():
            known = [time for time in (at, before) if time is not None]
            waits.setdefault(each, (max(known) if known else now) + EVERY)
        due = {each: at for each, at in waits.items() if at <= now}
        assert written == [(each, values[each], at) for at, each in sorted((at, each) for each, at in due.items())]
        waits = {each: at for each, at in waits.items() if each not in due}
        for each in due:
            assert now >= last.get(each, now - EVERY) + EVERY
            last[each] = now
        assert task.waits == 2 * len(waits)
