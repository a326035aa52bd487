"""The sessions of rows, whatever the epochs that they come in, beside a model that goes row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.interface import Made, TaskState
from kohort.spark.jobs.processors.sessions import SessionsProcessor
from kohort.spark.jobs.processors.states import State
from kohort.spark.program.internal_columns import ABSORBED, CHANGE, SESSION
from kohort.spark.program.operations import DUE, SESSIONS, Change, Sessions
from kohort.spark.program.windows import SessionSpec

from . import tasks
from .stores import DictStore

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("user", pa.string()), ("at", TIME), ("gap", pa.int64()), ("n", pa.int64())])
OUTPUT = pa.schema([*SCHEMA, (SESSION, pa.int64()), (ABSORBED, pa.list_(pa.int64())), (CHANGE, pa.int32())])
KEPT = pa.schema([("over", TIME), *((name, pa.int64()) for name in ("start", "last", "until"))])
DUES = pa.schema([("user", pa.string()), ("start", pa.int64()), ("at", pa.int64()), ("closed", pa.bool_())])

Row = tuple[str | None, int | None, int | None]
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 60), st.none() | st.integers(-1, 9)),
    max_size=30,
)
SIZES = st.lists(st.integers(0, 6), max_size=8)
Table = dict[tuple[str | None, int], list[int]]


@dataclass
class Task:
    """A task's stores, and the sessions that the aggregate after it would have: their rows, by group and start."""

    sessions: Sessions
    stores: dict[str, DictStore] = field(default_factory=lambda: {SESSIONS: DictStore(), DUE: DictStore()})
    table: Table = field(default_factory=dict)
    final: list[tuple[str | None, int, list[int]]] = field(default_factory=list)
    late: int = 0
    dropped: int = 0
    stream_time: int | None = None

    def run(self, rows: Sequence[Row], first: int) -> None:
        named = [{"user": user, "gap": gap, "n": first + n, "_time": time} for n, (user, time, gap) in enumerate(rows)]
        read, self.stream_time = tasks.given(named, SCHEMA, ["user"], self.stream_time, first)
        key = pa.schema([("over", TIME)])
        states = {
            SESSIONS: State(SESSIONS, KEPT, self.stores[SESSIONS], key),
            DUE: State(DUE, DUES, self.stores[DUE]),
        }
        made = SessionsProcessor(self.sessions, ("user",), OUTPUT).process(read, TaskState(0, self.stream_time, states))
        for store in self.stores.values():
            keys = [key for key, _ in store.writes]
            assert len(set(keys)) == len(keys), "a key is written once"
            store.commit()
        self._take(made)

    def _take(self, made: Made) -> None:
        self.late += made.late
        self.dropped += sum(count for _, count in made.dropped)
        rows = made.rows.to_pylist()
        assert len(rows) == len(made.of)
        fresh: Table = {}
        final = set()
        for row in rows:
            key = row["user"], row[SESSION]
            for start in row[ABSORBED] or ():
                fresh.setdefault(key, []).extend(self.table.pop((row["user"], start)))
            if row[CHANGE] in (Change.GROWN, Change.FINAL):
                fresh.setdefault(key, []).append(row["n"])
            if row[CHANGE] in (Change.FINAL, Change.CLOSED):
                final.add(key)
            if row[CHANGE] == Change.FORGOTTEN:
                del self.table[key]
        self.table |= fresh
        self.final += [(*key, sorted(self.table[key])) for key in final]

    def rows(self) -> Table:
        return {key: sorted(rows) for key, rows in self.table.items()}


@dataclass
class Session:
    user: str | None
    start: int
    until: int
    rows: list[int]


def model(sessions: Sessions, rows: Sequence[Row]) -> tuple[list[Session], int, int]:
    """The sessions of rows, how many rows are late and how many are in none; and what was ever made stays there."""
    window, kept = sessions.window, sessions.kept_ms
    found: list[Session] = []
    late = outside = 0
    now = -1
    for n, (user, time, own) in enumerate(rows):
        gap = own if window.gap_column is not None else window.gap_ms
        now = now if time is None else max(now, time)
        if time is None or gap is None or gap <= 0:
            outside += 1
            continue
        near = [
            each
            for each in found
            if each.user == user
            and each.start <= time + gap
            and each.until >= time
            and (kept is None or each.until + kept >= now)
        ]
        until = max([time + gap, *(each.until for each in near)])
        if window.grace_ms is not None and until + window.grace_ms < now:
            late += 1
            continue
        found = [each for each in found if each not in near]
        start = min([time, *(each.start for each in near)])
        found.append(Session(user, start, until, sorted([n, *(row for each in near for row in each.rows)])))
    return found, late, outside


def run(sessions: Sessions, rows: Sequence[Row], sizes: Sequence[int]) -> Task:
    task = Task(sessions)
    first = 0
    for size in (*sizes, len(rows)):
        if some := rows[first : first + size]:
            task.run(some, first)
        first += len(some)
    return task


def spec(gap: int | None, grace: int | None, retention: int | None = None, *, closes: bool = False) -> Sessions:
    return Sessions(SessionSpec("at", gap or 0, None if gap else "gap", grace, retention), closes)


@settings(max_examples=60)
@given(ROWS, SIZES, st.none() | st.integers(1, 9))
def test_rows_that_are_near_are_in_one_session(some: list[Row], sizes: list[int], gap: int | None) -> None:
    task = run(spec(gap, None), some, sizes)
    found, _, outside = model(task.sessions, some)
    assert task.rows() == {(each.user, each.start): each.rows for each in found}
    assert (task.late, task.dropped) == (0, outside)


@settings(max_examples=100)
@given(ROWS, SIZES, st.none() | st.integers(1, 9), st.integers(0, 12), st.none() | st.integers(0, 30))
def test_rows_are_late_by_the_session_that_they_would_make(
    some: list[Row], sizes: list[int], gap: int | None, grace: int, more: int | None
) -> None:
    task = run(spec(gap, grace, None if more is None else grace + more), some, sizes)
    found, late, outside = model(task.sessions, some)
    now = task.stream_time or 0
    expected = {(each.user, each.start): each.rows for each in found}
    kept = {(each.user, each.start): each.rows for each in found if more is None or each.until + grace + more >= now}
    # What is over is removed by the next epoch at the latest.
    assert kept.items() <= task.rows().items()
    assert task.rows().items() <= expected.items()
    assert (task.late, task.dropped) == (late, outside)


@settings(max_examples=100)
@given(ROWS, SIZES, st.integers(1, 9), st.integers(0, 12), st.none() | st.integers(0, 30))
def test_each_session_is_final_once(some: list[Row], sizes: list[int], gap: int, grace: int, more: int | None) -> None:
    task = run(spec(gap, grace, None if more is None else grace + more, closes=True), some, sizes)
    found, late, outside = model(task.sessions, some)
    now = task.stream_time or 0
    closed = [(each.user, each.start, each.rows) for each in found if each.until + grace < now]
    assert sorted(task.final, key=str) == sorted(closed, key=str)
    assert (task.late, task.dropped) == (late, outside)
    if more is None:
        assert task.rows() == {(each.user, each.start): each.rows for each in found}


def test_what_is_kept_of_closed_sessions_is_bounded() -> None:
    """Closed sessions leave nothing behind but what is to be asked for."""
    far: list[Row] = [("a", time, None) for time in range(0, 10_000, 100)]
    for closes in (False, True):
        task = run(spec(10, 5, 50, closes=closes), far, [1] * len(far))
        assert len(task.stores[SESSIONS].rows) == 1
        assert len(task.stores[DUE].rows) <= 2
        assert len(task.table) <= 2


def test_the_distance_of_the_gap_is_near() -> None:
    task = run(spec(10, None), [("a", 0, None), ("a", 10, None), ("a", 21, None)], [])
    assert task.rows() == {("a", 0): [0, 1], ("a", 21): [2]}


def test_a_session_that_began_later_is_absorbed() -> None:
    task = run(spec(10, None), [("a", 20, None), ("a", 40, None), ("a", 30, None), ("a", 11, None)], [1, 1, 1])
    assert task.rows() == {("a", 11): [0, 1, 2, 3]}
