"""What queries over HTTP need to know of an instance."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.spark.monitoring.lag import RecordsLag, StandbyLag
from kohort.spark.program.compiled import Route
from kohort.streams.endpoint import Endpoint

if TYPE_CHECKING:
    from kohort.protocol.records.partitioner import Partitioner

__all__ = [
    "Endpoint", "EndpointPartitions", "OpenStore", "Queryable", "ReadableStore", "StoreInfo", "StoreRole",
    "standby_lags",
]  # fmt: skip


class StoreRole(enum.Enum):
    """What an instance's copy of a store is."""

    ACTIVE = "active"
    """The task that owns it runs here: what is read is what was committed last."""
    RESTORING = "restoring"
    """The task that owns it is to run here, and its state is still being restored."""
    STANDBY = "standby"
    """A copy, in case the owner dies."""
    WARMUP = "warm-up"
    """A copy that is being restored, to take the task over."""
    GLOBAL = "global"
    """A global table, which every instance has whole."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What the program says of one of its stores.

    Attributes:
        name: of the aggregate or the table.
        columns: names and Spark's names of types ("string", "bigint") of the columns in its key, in order, without
            the window.
        windowed: whether keys begin with a window.
        json_keys: whether keys are JSON objects; otherwise they are the text of the one column.
        subtopology: whose tasks own it; None for a global table.
        route: what records are partitioned by: of the columns `routed_by` the text of the only one (`TEXT`), or a JSON
            object; None if that isn't known.
        sure: whether that is how it is, as the pipeline itself partitioned them. Otherwise it's up to those who write
            the source topic: the partition is likely, but a key that isn't there is looked for in all.
        micros: whether times in keys always have µs, as in what partitions follow from; else only where there are any.
        partitioner: how the route becomes a partition.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    windowed: bool
    json_keys: bool
    subtopology: str | None
    route: Route | None = None
    routed_by: tuple[str, ...] = ()
    sure: bool = False
    micros: bool = False
    partitioner: Partitioner = "murmur2"


class ReadableStore(Protocol):
    """What is read of a store, from any thread, while it is written to or closed.

    Both raise `StoreClosedError` when it has been closed; the caller then looks who has it now.
    """

    def get_many(self, keys: pa.Array) -> pa.Array:
        """Values of keys, both binary: as many, in their order, null where a key isn't there."""

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        """Columns `key` and `value` in the order of keys' bytes: from `start` to before `end`, at most `limit` rows."""


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A copy of a partition of a store, open in this instance.

    Attributes:
        name, partition: which; a global table's partition is None.
        role: what the copy is.
        lag: records of the changelog that it lacks; 0 for active ones; None if that isn't known yet.
        store: what to read.
    """

    name: str
    partition: int | None
    role: StoreRole
    lag: int | None
    store: ReadableStore


class Queryable(Protocol):
    """An instance, as queries see it. All of it is called in the event loop, often, and must not block."""

    def stores(self) -> Mapping[str, StoreInfo]:
        """All stores of the program by name; `infos.store_infos(program)` makes them."""

    def partitions(self, subtopology: str) -> int | None:
        """How many tasks a subtopology has: the partitions of its stores. None while that isn't known."""

    def inputs(self, subtopology: str, partition: int) -> Collection[TopicPartition]:
        """The input partitions of a task, which the group names it by in `endpoints`."""

    def open_stores(self, name: str) -> Sequence[OpenStore]:
        """The partitions of a store that are open here now."""

    def lags(self) -> Mapping[str, RecordsLag]:
        """The lag of each subtopology that has tasks here."""

    def endpoints(self) -> Mapping[Endpoint, EndpointPartitions]:
        """Which instance has which input partitions, as the group said last."""

    def endpoint(self) -> Endpoint | None:
        """Where others reach this instance; None if it told nobody."""


def standby_lags(instance: Queryable) -> Iterator[StandbyLag]:
    """The lags of an instance's standbys and warm-ups, as far as they are known."""
    for name in instance.stores():
        for store in instance.open_stores(name):
            is_copy = store.role in (StoreRole.STANDBY, StoreRole.WARMUP)
            if is_copy and store.partition is not None and store.lag is not None:
                yield StandbyLag(name, store.partition, store.role.value, store.lag)
