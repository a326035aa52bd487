"""The instance as queries see it: implements `kohort.spark.queries.queryable.Queryable`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.spark.monitoring.lag import RecordsLag
from kohort.spark.queries.queryable import OpenStore, StoreInfo, StoreRole
from kohort.spark.runtime.local_task import LocalTask
from kohort.spark.runtime.task_states import IN_AN_EPOCH, TaskState
from kohort.streams.endpoint import Endpoint
from kohort.streams.tasks import Role, TaskId

if TYPE_CHECKING:
    from kohort.spark.runtime.instance import Instance

_COPIES: Final = {Role.STANDBY: StoreRole.STANDBY, Role.WARMUP: StoreRole.WARMUP}


class QueryableInstance:
    """Answers what is open in an instance, and which instance has which partitions."""

    def __init__(
        self, instance: Instance, infos: Mapping[str, StoreInfo], inner: Collection[str] = frozenset()
    ) -> None:
        self._instance, self._infos, self._inner = instance, infos, inner

    def stores(self) -> Mapping[str, StoreInfo]:
        return self._infos

    def inner_stores(self) -> Collection[str]:
        return self._inner

    def partitions(self, subtopology: str) -> int | None:
        known = self._instance.known_topics()
        counts = []
        for topic in self._instance.plan.topology.subtopologies[subtopology].inputs:
            if topic not in known:
                return None
            counts.append(len(known[topic].partitions))
        return max(counts, default=None)

    def inputs(self, subtopology: str, partition: int) -> Collection[TopicPartition]:
        return self._instance.plan.inputs(TaskId(subtopology, partition))

    def open_stores(self, name: str) -> Sequence[OpenStore]:
        info = self._infos.get(name)
        if info is None:
            return ()
        stores = self._instance.stores
        if info.subtopology is None:
            store = stores.get(name, None)
            if store is None:
                return ()
            if not self._globals_ready:
                return (OpenStore(name, None, StoreRole.RESTORING, None, store),)
            return (OpenStore(name, None, StoreRole.GLOBAL, 0, store),)
        found = []
        for task, local in sorted(self._instance.manager.tasks.items()):
            store = stores.get(name, task.partition) if task.subtopology == info.subtopology else None
            role = _role(local)
            if store is not None and role is not None:
                lag = 0 if role is StoreRole.ACTIVE else self._lag(task, name)
                found.append(OpenStore(name, task.partition, role, lag, store))
        return found

    def endpoints(self) -> Mapping[Endpoint, EndpointPartitions]:
        return self._instance.endpoints

    def endpoint(self) -> Endpoint | None:
        return self._instance.endpoint

    def lags(self) -> Mapping[str, RecordsLag]:
        epochs = self._instance.manager.epochs
        return {
            name: RecordsLag(each.lag(name), each.ends_at)
            for name, each in epochs.items()
            if each.ends and any(task.subtopology == name and it.positions for task, it in each.tasks.items())
        }

    @property
    def _globals_ready(self) -> bool:
        return self._instance.globals is None or self._instance.globals.ready

    def _lag(self, task: TaskId, name: str) -> int | None:
        changelog = self._instance.plan.changelogs(task)[name]
        known = self._instance.changelogs.positions().get(changelog)
        return None if known is None else max(0, known[1] - known[0])


def _role(task: LocalTask) -> StoreRole | None:
    match task.state:
        case TaskState.FOLLOWING if task.wanted is not None:
            return _COPIES.get(task.wanted)
        case TaskState.RESTORING:
            return StoreRole.RESTORING
        case TaskState.RUNNING:
            return StoreRole.ACTIVE
    # One that is to be given up when its epoch is over: somebody else is about to have it.
    return StoreRole.ACTIVE if task.state in IN_AN_EPOCH and task.wanted is Role.ACTIVE else None
