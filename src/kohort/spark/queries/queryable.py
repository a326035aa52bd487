"""What queries need of an instance: its stores, their copies here, and where partitions are."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.spark.monitoring.lag import RecordsLag, StandbyLag
from kohort.spark.program.compiled import Route
from kohort.streams.endpoint import Endpoint

if TYPE_CHECKING:
    from kohort.protocol.records.partitioner import Partitioner
    from kohort.spark.state import Store


class StoreRole(enum.Enum):
    """The role of an instance's copy of a store."""

    ACTIVE = "active"
    """Its task runs here: reads return what was committed last."""
    RESTORING = "restoring"
    """Its task is assigned here, and still restores its state."""
    STANDBY = "standby"
    """A copy in case the active task's instance dies."""
    WARMUP = "warm-up"
    """A copy that is restored in order to take the task over."""
    GLOBAL = "global"
    """A global table, which every instance has in full."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A store of the program.

    Attributes:
        name: the aggregate's or the table's.
        columns: the columns of its key in order, without the window: names, and types as Spark names them ("bigint").
        windowed: whether keys begin with a window.
        json_keys: whether keys are JSON objects; otherwise they are the text of the only column.
        subtopology: whose tasks have it; None for a global table.
        route: what records are partitioned by: the text of the only column of `routed_by` (`TEXT`), or a JSON object
            of these columns; None if unknown.
        partition_certain: whether keys are always in the partition that their route leads to, since the pipeline
            wrote them there. Other writers may partition a source topic in another way: a key that isn't found there
            is looked for in all partitions.
        micros: whether times in keys always have µs, as in routes; else only where they aren't 0.
        partitioner: how a route becomes a partition.
        route_names: what the columns of `routed_by` are called in the route; () for the same.
        group: how many of the first columns are a group's that may have several rows; 0: each key is for itself.
        shown: columns of values that users call otherwise than they are stored, and how.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    windowed: bool
    json_keys: bool
    subtopology: str | None
    route: Route | None = None
    routed_by: tuple[str, ...] = ()
    partition_certain: bool = False
    micros: bool = False
    partitioner: Partitioner = "murmur2"
    route_names: tuple[str, ...] = ()
    group: int = 0
    shown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A copy of a partition of a store, open in this instance.

    Attributes:
        name, partition: the store's; a global table's partition is None.
        lag: records of the changelog that it lacks; 0 if it is active; None if unknown.
    """

    name: str
    partition: int | None
    role: StoreRole
    lag: int | None
    store: Store


class Queryable(Protocol):
    """An instance, as queries see it. All methods are called in the event loop, often, and must not block."""

    def stores(self) -> Mapping[str, StoreInfo]:
        """The stores of the program by name, as `store_infos(program)` returns them."""

    def inner_stores(self) -> Collection[str]:
        """The names of those that steps keep for themselves, as `inner_stores(program)` returns them."""

    def partitions(self, subtopology: str) -> int | None:
        """How many tasks a subtopology has, and so partitions of its stores; None while unknown."""

    def inputs(self, subtopology: str, partition: int) -> Collection[TopicPartition]:
        """The input partitions of a task, by which `endpoints` names it."""

    def open_stores(self, name: str) -> Sequence[OpenStore]:
        """The partitions of a store that are open here."""

    def lags(self) -> Mapping[str, RecordsLag]:
        """The lag of each subtopology that has tasks here."""

    def endpoints(self) -> Mapping[Endpoint, EndpointPartitions]:
        """The input partitions of each instance, as the group said last."""

    def endpoint(self) -> Endpoint | None:
        """Where others reach this instance; None without an `application_server`."""


def standby_lags(instance: Queryable) -> Iterator[StandbyLag]:
    """The lags of an instance's standbys and warm-ups, as far as they are known."""
    for name in instance.stores():
        for store in instance.open_stores(name):
            is_copy = store.role in (StoreRole.STANDBY, StoreRole.WARMUP)
            if is_copy and store.partition is not None and store.lag is not None:
                yield StandbyLag(name, store.partition, store.role.value, store.lag)
