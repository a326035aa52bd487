"""Activates a task, step by step as `runtime.activation` does: dangling transactions, offsets, stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.spark.program.committed_metadata import committed_by
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import GROUP
from tests.simulation.runtime.clock import Steps
from tests.simulation.runtime.stores import Store

if TYPE_CHECKING:
    from tests.simulation.runtime.instance import Instance

UNSTABLE_MS = 2_000
POLL_MS = 100
OFTEN_MS = 20
PATIENCE_MS = 6_000  # so long it may take to end a transaction whose process has left the group
PASSED = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
Places = tuple[dict[TopicPartition, int], int | None]


def transactional_id(process_id: str, subtopology: str) -> str:
    """The transactional id of a process's subtopology."""
    return f"{GROUP}/{process_id}/{subtopology}"


class Activation:
    """Activates the tasks of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self._cluster = instance, instance.cluster
        self._rng = self._cluster.rng

    def activate(self, task: TaskId, open_producer: Callable[[], Steps]) -> Steps:
        """Restore a task up to what is committed: where it reads on, and its stream time.

        Raises:
            KafkaError, ClientError, StateError: try again.
        """
        stores = yield from self._instance.open_stores(task)
        yield from open_producer()
        yield from self.end_dangling()
        committed = yield from self.committed(task)
        places = yield from self.places(task, committed)
        for name in sorted(stores):
            yield from self.restore(task, name, stores[name])
        for store in stores.values():
            store.writer = "epoch"
        return places

    def end_dangling(self) -> Steps:
        """End transactions of processes that aren't in the group. What doesn't work out will time out."""
        cluster, coordinator, transactions = self._cluster, self._cluster.coordinator, self._cluster.transactions
        try:
            open_ones = yield from cluster.insist("list transactions", transactions.open_ones)
            if not open_ones:
                return
            alive = yield from cluster.insist("describe", coordinator.processes)
            for name in open_ones:
                process = name.split("/")[1]
                if process not in alive and process != self._instance.process.process_id:
                    cluster.counts["dangling"] += 1
                    cluster.note(self._instance, "ends the transaction of", name)
                    yield from cluster.insist(f"fence {name}", lambda name=name: transactions.start(name))
        except (KafkaError, ClientError):
            return

    def committed(self, task: TaskId) -> Steps:
        """What is committed; waits for transactions that are being decided."""
        inputs = self._instance.application.plan.inputs(task)
        patience = Patience(self._instance)
        while True:
            try:
                return (yield from self._stable(inputs))
            except RequestTimeoutError:
                self._cluster.counts["unstable"] += 1
                patience.check(task)
                yield from self.end_dangling()

    def _stable(self, inputs: tuple[TopicPartition, ...]) -> Steps:
        clock, cluster, member = self._cluster.clock, self._cluster, self._instance.member
        deadline, moved = clock.now + UNSTABLE_MS, False
        while clock.now < deadline:
            who = member.group_metadata()
            try:
                code, found = yield from cluster.ask(
                    "committed", lambda who=who: cluster.coordinator.committed(inputs, who.member_id, who.generation)
                )
            except (KafkaError, ConnectionLostError, RequestTimeoutError):
                yield POLL_MS
                continue
            if code in PASSED and not moved and (yield from self._moved_on(who.generation)):
                moved = True
                continue
            if code:
                raise KafkaError(code)
            if not any(error for error, _, _ in found.values()):
                return {at: (offset, text) for at, (_, offset, text) in found.items() if offset >= 0}
            yield POLL_MS
        raise RequestTimeoutError("offsets aren't stable")

    def _moved_on(self, epoch: int) -> Steps:
        """Hear from the coordinator; whether the member has another epoch then."""
        member = self._instance.member
        answers = self._instance.heard
        if member.epoch == epoch:
            member.heartbeat_soon(self._cluster.clock.now)
            self._instance.poke()
        while member.epoch == epoch and self._instance.heard == answers:
            yield OFTEN_MS
        return member.epoch not in (0, epoch)

    def places(self, task: TaskId, committed: dict[TopicPartition, tuple[int, str]]) -> Steps:
        """Where the task reads on, and its stream time."""
        yield 2
        times = [said.stream_time for _, text in committed.values() if (said := committed_by(text)) is not None]
        inputs = self._instance.application.plan.inputs(task)
        positions = {at: committed[at][0] if at in committed else 0 for at in inputs}
        return positions, max((time for time in times if time is not None), default=None)

    def restore(self, task: TaskId, name: str, store: Store) -> Steps:
        """Restore a store up to what is in the changelog now; waits for what is open there. Then leave it alone."""
        store.writer = "changelog"
        changelog = self._instance.application.changelog(task, name)
        log = self._cluster.logs[changelog]
        try:
            yield from self._cluster.ask(f"end of {changelog}", lambda: None)
            target = self.end(changelog)
            patience = Patience(self._instance)
            while (store.position or 0) < target:
                patience.check(task)
                yield 10 + self._instance.takes() // 4
                self.read_on(changelog, store, min(target, log.stable))
        except Exception:  # not when a crash has left this behind: the store is another instance's by then
            store.writer = "nobody"
            raise
        store.writer = "nobody"

    def end(self, changelog: TopicPartition) -> int:
        """Up to where a restore goes: all that is there now, be it decided or not."""
        return self._cluster.logs[changelog].end

    def read_on(self, changelog: TopicPartition, store: Store, stable: int) -> None:
        """Take in some of what the changelog has."""
        log = self._cluster.logs[changelog]
        start = store.position or 0
        end = min(stable, start + 1 + self._rng.randrange(40))
        if end > start:
            rows = {record.key: record.value for _, record in log.counting(start, end)}
            store.write("changelog", rows, end)
            self._cluster.oracle.check_state(f"{self._instance} restores", changelog, end, store.rows)


class Patience:
    """Somebody waits for transactions; not for long, if their process isn't in the group."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self._cluster = instance, instance.cluster
        self._since: dict[object, int] = {}

    def check(self, task: TaskId) -> None:
        """To be asked again and again while a task waits."""
        coordinator, transactions, now = self._cluster.coordinator, self._cluster.transactions, self._cluster.clock.now
        names = transactions.open_ones() if coordinator.up else []
        if not names:
            self._since.clear()
            return
        alive = {*coordinator.processes(), self._instance.process.process_id}
        left = {(name, transactions.producers[name].identity) for name in names if name.split("/")[1] not in alive}
        self._since = {one: self._since.get(one, now) for one in left}
        if any(now - since > PATIENCE_MS for since in self._since.values()):
            raise InvariantError(f"taken over in time: {self._instance}: {task} waits for {left}")
