"""The instance as queries see it: implements `kohort.spark.queries.queryable.Queryable`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kohort.client.streams.events import Endpoint, EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.spark.monitoring.lag import RecordsLag
from kohort.spark.queries.queryable import OpenStore, StoreInfo, StoreRole
from kohort.spark.runtime.local_task import LocalTask, Phase
from kohort.streams.tasks import Role, TaskId

if TYPE_CHECKING:
    from kohort.spark.runtime.instance import Instance

_COPIES: Final = {Role.STANDBY: StoreRole.STANDBY, Role.WARMUP: StoreRole.WARMUP}


class QueryableInstance:
    """Answers what is open in an instance, and which instance has which partitions.

    Args:
        instance: the instance.
        infos: the program's stores by name.
    """

    def __init__(self, instance: Instance, infos: Mapping[str, StoreInfo]) -> None:
        self._instance, self._infos = instance, infos

    def stores(self) -> Mapping[str, StoreInfo]:
        """The stores of the program by name."""
        return self._infos

    def partitions(self, subtopology: str) -> int | None:
        """How many tasks a subtopology has; None while unknown."""
        known = self._instance.known_topics()
        counts = []
        for topic in self._instance.blueprint.topology.subtopologies[subtopology].inputs:
            if topic not in known:
                return None
            counts.append(len(known[topic].partitions))
        return max(counts, default=None)

    def inputs(self, subtopology: str, partition: int) -> Collection[TopicPartition]:
        """The input partitions of a task."""
        return self._instance.blueprint.inputs(TaskId(subtopology, partition))

    def open_stores(self, name: str) -> Sequence[OpenStore]:
        """The partitions of a store that are open here."""
        info = self._infos.get(name)
        if info is None:
            return ()
        stores = self._instance.stores
        if info.subtopology is None:
            store = stores.get(name, None)
            if store is None:
                return ()
            if not self._instance.globals_ready:
                return (OpenStore(name, None, StoreRole.RESTORING, None, store),)
            return (OpenStore(name, None, StoreRole.GLOBAL, 0, store),)
        found = []
        for task, held in sorted(self._instance.held.items()):
            store = stores.get(name, task.partition) if task.subtopology == info.subtopology else None
            role = _role(held)
            if store is not None and role is not None:
                lag = 0 if role is StoreRole.ACTIVE else self._lag(task, name)
                found.append(OpenStore(name, task.partition, role, lag, store))
        return found

    def endpoints(self) -> Mapping[Endpoint, EndpointPartitions]:
        """The input partitions of each instance, as the group said last."""
        return self._instance.endpoints

    def endpoint(self) -> Endpoint | None:
        """Where others reach this instance; None without an `application_server`."""
        return self._instance.endpoint

    def lags(self) -> Mapping[str, RecordsLag]:
        """The lag of each subtopology that has tasks here."""
        lanes = self._instance.lanes.items()
        return {subtopology: RecordsLag(*behind) for subtopology, lane in lanes if (behind := lane.behind) is not None}

    def _lag(self, task: TaskId, name: str) -> int | None:
        changelog = self._instance.blueprint.changelogs(task)[name]
        known = self._instance.tailer.positions().get(changelog)
        return None if known is None else max(0, known[1] - known[0])


def _role(held: LocalTask) -> StoreRole | None:
    match held.phase:
        case Phase.RUNNING:
            return StoreRole.ACTIVE
        case Phase.OPENING:
            return StoreRole.RESTORING
        case Phase.COPY:
            return _COPIES.get(held.role)
    return None  # it is being closed: somebody else is about to have it
