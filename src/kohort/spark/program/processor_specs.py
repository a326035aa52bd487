"""Processors as data: steps that keep state by key. What they do with rows is in `kohort.spark.jobs.processors`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


class StateKind(StrEnum):
    """How a store of a processor holds state. Its keys are JSON objects that begin with the group's columns.

    Stores with a retention have the start of a bucket of time before these, as `window`.
    """

    VALUE = "value"
    """One object a key."""
    LIST = "list"
    """Rows in the order in which they were added: after the group, keys have `at`, which goes up; values some rows."""
    MAP = "map"
    """One object for each key of the map, whose columns follow the group's in the store's keys."""


@dataclass(frozen=True)
class StateSpec:
    """A store of a processor.

    Attributes:
        name: what the processor calls it.
        store: the store's name.
        changelog: its changelog topic.
        columns: what is kept for each key or row.
        map_key: of a map, the columns of its keys.
        bucket_ms: of a store whose keys begin with a time, how long a bucket of time is; 0 for none.
        retention_ms: how long after its start a bucket is kept by stream time; 0 where the processor itself forgets.
        ttl_ms: how long a function's entry is kept after its last write; 0: for ever.
        own: whether the processor keeps it for itself: neither functions of the user's nor queries see it.
        ttl_by_clock: whether its time to live is the clock's, not the stream's.
        clock: whether its keys begin with times of the clock at which the processor is to be called.
        shown: columns that the user calls otherwise, and how.
    """

    name: str
    store: str
    changelog: str
    kind: StateKind
    columns: StructType
    map_key: StructType | None = None
    bucket_ms: int = 0
    retention_ms: int = 0
    ttl_ms: int = 0
    own: bool = False
    ttl_by_clock: bool = False
    clock: bool = False
    shown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Process:
    """A step that keeps state by key: a function over the rows of an epoch, task by task, that gives other rows.

    Attributes:
        name: of the processor, with which the names of its stores begin.
        group: the columns that state is kept by, with their types.
        rows: the columns of the rows that it is given.
        output: the columns of those that it gives.
        operation: what it does.
        states: its stores.
        routed_by: those columns of `group` that the input is keyed by, in the order in which its key has them.
        event_time: the column of `rows` that is the event time; None for the record's timestamp.
        route_names: what the columns of `routed_by` are called in the input's key; () for the same.
        in_place: whether it joins two topics that are read where they lie, each with a stream time of its own.
    """

    name: str
    group: tuple[tuple[str, DataType], ...]
    rows: StructType
    output: StructType
    operation: Operation
    states: tuple[StateSpec, ...]
    routed_by: tuple[str, ...]
    event_time: str | None = None
    route_names: tuple[str, ...] = ()
    in_place: bool = False

    @property
    def by_clock(self) -> bool:
        """Whether it is called when the clock has reached a timer, with or without rows."""
        return any(state.clock for state in self.states)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the columns that state is kept by."""
        return tuple(name for name, _ in self.group)


class Operation(ABC):
    """What a processor does, as plain data; `identity` changes with what its state means."""

    passes_rows: bool = False
    """Whether its rows have all columns of the rows that it is given, with the same group."""

    @property
    def what(self) -> str:
        """The method that makes it."""
        return "process"

    @property
    @abstractmethod
    def kind(self) -> str:
        """As topologies are described: "KSTREAM-…"."""

    @property
    def by_stream_time(self) -> bool:
        """Whether it compares event times with the stream time, and so needs them as they were read."""
        return False

    @property
    def identity(self) -> list[object]:
        """What makes its state unreadable for another."""
        return []
