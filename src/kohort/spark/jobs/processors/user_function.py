"""Runs functions of the user's over the rows of an epoch and the state of their groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.errors import ProcessorError
from kohort.spark.jobs.function_results import typed, written_in
from kohort.spark.jobs.processors.expiry import ExpiringState
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.states import Found, State, at_time, before_time, joined_keys
from kohort.spark.jobs.processors.times import millis
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.function_outputs import OUTPUT, output_column
from kohort.spark.program.operations import CLOCK_TIMERS, TIMERS, TTL

_NAME: Final = "name"
_AT: Final = "at"


class Groups:
    """The groups that a call is about: those of its rows, and those whose timers are due."""

    def __init__(self, columns: pa.Table, keys: pa.Array) -> None:
        self.columns, self.keys = columns, keys

    def keys_of(self, what: str, table: pa.Table) -> pa.Array:
        """The keys of a table's rows by its group columns, which need be none of these groups.

        Raises:
            ProcessorError: it lacks one, or has it in another type.
        """
        group = checked(what, table, self.columns.schema)
        return group_keys(group.column_names, [each.combine_chunks() for each in group.columns])

    def beside(self, found: Found) -> pa.Table:
        """Rows of a store, with their group's columns before them."""
        return _side_by_side(self.columns.take(pa.array(found.groups)), found.rows)


@dataclass(frozen=True)
class ValueState:
    """One row for each group. Tables have the group's columns, then those of the state."""

    name: str
    state: State | ExpiringState
    groups: Groups

    def get(self) -> pa.Table:
        """The rows of this call's groups that have one."""
        return self.groups.beside(self.state.get(self.groups.keys))

    def put(self, rows: pa.Table) -> None:
        """New rows of groups; of several for one group the last counts."""
        keys = self.groups.keys_of(f"{self.name}.put", rows)
        self.state.put(keys, checked(f"{self.name}.put", rows, self.state.columns))

    def delete(self, groups: pa.Table) -> None:
        """Takes out the rows of groups."""
        self.state.delete(self.groups.keys_of(f"{self.name}.delete", groups))


@dataclass
class ListState:
    """Rows for each group, in the order in which they were added."""

    name: str
    state: State | ExpiringState
    groups: Groups
    place: int
    piece: int = 0
    appended: bool = False

    def get(self) -> pa.Table:
        """All rows of this call's groups, group by group."""
        return self.groups.beside(self.state.lists(self.groups.keys))

    def append(self, rows: pa.Table) -> None:
        """Adds rows, behind those that are there: once in each call of the function.

        Raises:
            ProcessorError: it is done again, which would replace what was added.
        """
        if self.appended:
            raise ProcessorError(
                f"{self.name}.append is called again in one call of the function: give it all rows at once"
            )
        self.appended = True
        keys = self.groups.keys_of(f"{self.name}.append", rows)
        places = pa.repeat(pa.scalar(self.place, pa.int64()), len(keys))
        self.state.append(keys, checked(f"{self.name}.append", rows, self.state.columns), places, self.piece)

    def clear(self, groups: pa.Table) -> None:
        """Takes out all that these groups had before this call."""
        self.state.clear(self.groups.keys_of(f"{self.name}.clear", groups).unique())


@dataclass(frozen=True)
class MapState:
    """Rows by a key for each group. Tables have the group's columns, those of the map's key, and the others."""

    name: str
    state: State | ExpiringState
    groups: Groups

    def get(self, wanted: pa.Table) -> pa.Table:
        """The rows that there are of these groups and keys."""
        found = self.state.get(self._keys("get", wanted))
        group = wanted.select(self.groups.columns.column_names).take(pa.array(found.groups))
        return _side_by_side(group, found.rows)

    def entries(self) -> pa.Table:
        """All rows of this call's groups, in the order of their keys as texts."""
        return self.groups.beside(self.state.entries(self.groups.keys))

    def put(self, rows: pa.Table) -> None:
        """New rows; of several for one group and key the last counts."""
        self.state.put(self._keys("put", rows), checked(f"{self.name}.put", rows, self.state.columns))

    def delete(self, keys: pa.Table) -> None:
        """Takes out the rows of these groups and keys."""
        self.state.delete(self._keys("delete", keys))

    def _keys(self, what: str, table: pa.Table) -> pa.Array:
        what = f"{self.name}.{what}"
        return self.state.entry_keys(self.groups.keys_of(what, table), checked(what, table, self.state.map_key))


class Timers:
    """Timers by event time, or by the clock: a group is called again when its task's stream time has reached them.

    Attributes:
        due: those that are: the group's columns, `at` and `name`. They are taken out by themselves.
    """

    def __init__(self, state: State, groups: Groups, due: pa.Table) -> None:
        self._state, self._groups, self.due = state, groups, due

    def set(self, timers: pa.Table) -> None:
        """Sets timers: the group's columns, `at` (TIMESTAMP) and, to tell several of a group apart, `name` (STRING).

        One whose time is over is due in the next call for the task.
        """
        rows = self._complete("timers.set", timers)
        self._state.put(self._keys(rows), rows)

    def delete(self, timers: pa.Table) -> None:
        """Takes out timers: with the same `at` and `name` as they were set."""
        self._state.delete(self._keys(self._complete("timers.delete", timers)))

    def _complete(self, what: str, timers: pa.Table) -> pa.Table:
        if _NAME not in timers.column_names:
            timers = timers.append_column(_NAME, pa.repeat(pa.scalar("", pa.string()), timers.num_rows))
        return checked(what, timers, self._state.columns)

    def _keys(self, rows: pa.Table) -> pa.Array:
        groups = self._groups.keys_of("timers", rows)
        named = joined_keys(groups, group_keys([_NAME], [rows[_NAME].combine_chunks()]))
        times = millis(rows[_AT].combine_chunks())
        possible = pc.and_(pc.greater_equal(times, FIRST_MS), pc.less_equal(times, LAST_MS))
        if not pc.all(pc.fill_null(possible, False), min_count=0).as_py():
            raise ProcessorError("a timer's `at` is null, or not in the years 1 to 9999")
        return at_time(named, times)


class ProcessState:
    """What a function is called with beside the rows: `state["a name"]`, and the groups that it is about.

    Attributes:
        groups: the columns of the groups in this call: of its rows, and of timers that are due.
        stream_time: how far the task is, in ms since 1970; None before there is any time.
        now: the time by the clock, in ms since 1970: of the whole epoch.
    """

    def __init__(
        self,
        states: Mapping[str, ValueState | ListState | MapState],
        groups: pa.Table,
        stream_time: int | None,
        timers: Mapping[str, Timers],
        now: int,
    ) -> None:
        self._states, self.groups, self.stream_time, self._timers = states, groups, stream_time, timers
        self.now = now

    @property
    def timers(self) -> Timers:
        """The timers by event time.

        Raises:
            ProcessorError: the program doesn't say that there are any.
        """
        return self._by(TIMERS, "event")

    @property
    def clock_timers(self) -> Timers:
        """The timers by the clock. Raises as `timers`."""
        return self._by(CLOCK_TIMERS, "processing")

    def _by(self, name: str, by: str) -> Timers:
        if name not in self._timers:
            both = '("event", "processing")' if self._timers else f'"{by}"'
            raise ProcessorError(
                f"timers by {by} time are used that the program doesn't know of: say process(…, timers={both})"
            )
        return self._timers[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._states:
            raise ProcessorError(f"there is no state {name!r}; there are {', '.join(self._states) or 'none'}")
        return self._states[name]


@dataclass(frozen=True)
class UserFunctionProcessor:
    """A function of the user's.

    Attributes:
        name: the processor's, for errors.
        kinds: of its states, but for the timers.
        group: the columns that state is kept by.
        output: the columns of what it gives.
        ttls: how long (ms) entries of states are kept after their last write, where that isn't for ever, and whether
            that goes by the clock.
        outputs: the columns of several outputs, which those of `output` are made of; () for just one.
    """

    name: str
    function: Callable[[Any, Any], Any]
    kinds: Mapping[str, str]
    group: pa.Schema
    output: pa.Schema
    ttls: Mapping[str, tuple[int, bool]] = field(default_factory=dict)
    outputs: tuple[tuple[str, pa.Schema], ...] = ()

    def process(self, rows: Rows, task: TaskState) -> Made:
        due = {
            name: self._due(task.states[name], now)
            for name, now in ((TIMERS, task.stream_time), (CLOCK_TIMERS, task.now))
            if name in task.states
        }
        groups = self._groups(rows, due.values())
        kinds = {"value": ValueState, "map": MapState}
        place, piece = pc.max(rows.offsets).as_py() or 0, 0
        if not len(rows.keys):
            # Between what was read and what will be, and behind what other such epochs have added.
            place, piece = max(task.position - 1, 0), task.now
        kept = {
            name: self._kept(name, kind, task, max(len(groups.keys), len(rows.keys)))
            for name, kind in self.kinds.items()
        }
        states: dict[str, Any] = {
            name: ListState(name, kept[name], groups, place, piece)
            if kind == "list"
            else kinds[kind](name, kept[name], groups)
            for name, kind in self.kinds.items()
        }
        timers = {name: Timers(task.states[name], groups, each) for name, each in due.items()}
        state = ProcessState(states, groups.columns, task.stream_time, timers, task.now)
        try:
            given = self.function(rows.columns, state)
            made = self._united(given) if self.outputs else self._checked("", given, self.output)
        except ProcessorError as error:
            raise ProcessorError(f"{error}{written_in(self.function)}") from error
        return Made(made, pa.nulls(made.num_rows, pa.int64()))

    def _checked(self, output: str, given: Any, schema: pa.Schema) -> pa.Table:
        """The rows that the function gives, or those of one of its outputs, as messages call that."""
        what = f"the function of processor {self.name!r}"
        if given is None:
            return schema.empty_table()
        if isinstance(given, pa.RecordBatch):
            given = pa.Table.from_batches([given])
        if not isinstance(given, pa.Table):
            raise ProcessorError(f"{what} must return a pyarrow.Table or None{output}, not {type(given).__name__}")
        return checked(f"{what}{output}", given, schema)

    def _united(self, given: Any) -> pa.Table:
        """The rows of several outputs, one after the other."""
        names = [name for name, _ in self.outputs]
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise ProcessorError(
                f"the function of processor {self.name!r} must return a dict of tables, by the names of its outputs "
                f"({', '.join(names)}), or None, not {type(given).__name__}"
            )
        if unknown := [name for name in given if name not in names]:
            raise ProcessorError(
                f"the function of processor {self.name!r} returns an output {unknown[0]!r}; there are: "
                f"{', '.join(names)}"
            )
        tables = []
        for number, (name, schema) in enumerate(self.outputs):
            rows = self._checked(f" for the output {name!r}", given.get(name), schema)
            columns = {output_column(number, at): column for at, column in enumerate(rows.columns)}
            columns[OUTPUT] = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
            nulls = {each.name: each.type for each in self.output if each.name not in columns}
            columns |= {each: pa.nulls(rows.num_rows, kind) for each, kind in nulls.items()}
            tables.append(pa.table([columns[each] for each in self.output.names], names=self.output.names))
        return pa.concat_tables(tables).combine_chunks()

    def _kept(self, name: str, kind: str, task: TaskState, entries: int) -> State | ExpiringState:
        """A state; one with a time to live has lost some of what has expired."""
        state = task.states[name]
        if name not in self.ttls:
            return state
        ttl_ms, by_clock = self.ttls[name]
        now = task.now if by_clock else task.stream_time
        expiring = ExpiringState(state, task.states[f"{name}-{TTL}"], ttl_ms, now)
        expiring.expire(entries, lists=kind == "list")
        return expiring

    def _due(self, state: State, now: int | None) -> pa.Table:
        """The timers that are due, which are taken out."""
        if now is None:
            return state.columns.empty_table()
        _, keys, values = state.access.scan(*before_time(min(now, LAST_MS - 1) + 1))
        state.delete(keys)
        return state.decoded(values)

    def _groups(self, rows: Rows, timers: Iterable[pa.Table]) -> Groups:
        """The groups of rows and timers, each once, in the order in which they come."""
        names = self.group.names
        columns = pa.concat_tables([each.select(names).cast(self.group) for each in (rows.columns, *timers)])
        due = [group_keys(names, [each[name].combine_chunks() for name in names]) for each in timers]
        keys = pa.concat_arrays([rows.keys, *due])
        encoded = keys.dictionary_encode()
        _, first = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_index=True)
        return Groups(columns.take(pa.array(first)), encoded.dictionary)


def _side_by_side(left: pa.Table, right: pa.Table) -> pa.Table:
    """The columns of two tables of as many rows."""
    return pa.Table.from_arrays([*left.columns, *right.columns], names=[*left.column_names, *right.column_names])


def checked(what: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, in its types.

    Raises:
        ProcessorError: there are others.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise ProcessorError(f"{what}: it takes a pyarrow.Table, not {type(table).__name__}")
    if missing := [name for name in schema.names if name not in table.column_names]:
        raise ProcessorError(
            f"{what}: the columns must be {', '.join(schema.names)}; {', '.join(missing)} not among "
            f"{', '.join(table.column_names) or 'none'}"
        )
    kinds = pa.schema([field.with_nullable(True) for field in schema])
    try:
        return typed(table, kinds).combine_chunks()
    except TypeError as error:
        raise ProcessorError(f"{what}: {error}") from None
