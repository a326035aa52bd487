"""The brokers: logs, transactions and the group's coordinator, and the network that leads there."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError
from kohort.client.types import TopicPartition
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import Application
from tests.simulation.runtime.clock import Answer, Clock, Steps
from tests.simulation.runtime.coordinator import Coordinator
from tests.simulation.runtime.faults import Faults
from tests.simulation.runtime.logs import Logs
from tests.simulation.runtime.oracle import Oracle
from tests.simulation.runtime.transactions import ConcurrentTransactionsError, Transactions

WAY_MS = 20  # at most, there or back
TIMEOUT_MS = 2_000
RECONNECT_MS = 200
AGAIN_MS = 40
INSIST_MS = 10_000
EXPIRE_EVERY_MS = 1_000


class Cluster:
    """Everything that instances share.

    Attributes:
        faults: what goes wrong now.
        trace: the last events, for whoever reads a failure.
        counts: of what happened.
    """

    def __init__(self, rng: Random, application: Application, settings: StreamsSettings, faults: Faults) -> None:
        self.rng, self.application, self.faults = rng, application, faults
        self.clock = Clock()
        self.logs = Logs()
        self.coordinator = Coordinator(self.clock, settings)
        self.oracle = Oracle(application, self.logs, lambda: self.clock.now)
        self.transactions = Transactions(
            self.clock,
            rng,
            self.logs,
            self.coordinator,
            rng.choice((60_000, 15_000)),
            rng.choice((100, 1_000, 4_000)),
            self.oracle.committed,
        )
        self.trace: deque[tuple[object, ...]] = deque(maxlen=250)
        self.counts: Counter[str] = Counter()
        self._arrivals: Counter[str] = Counter()  # when the last request of a connection got there
        for topic in application.sources:
            self.coordinator.topics.create(topic, application.partitions)
        self.clock.after(EXPIRE_EVERY_MS, self._expire)

    def note(self, *event: object) -> None:
        """Remember what happened."""
        self.trace.append((self.clock.elapsed, *event))

    def run(self, ms: int) -> None:
        """Let time pass; the coordinator's timers go off when they are due."""
        end, clock, coordinator = self.clock.now + ms, self.clock, self.coordinator
        while True:
            following, due = clock.next_at(), coordinator.wheel.next_deadline()
            if coordinator.up and due is not None and due <= end and (following is None or due <= following):
                clock.now = max(clock.now, due)
                coordinator.advance()
            elif following is not None and following <= end:
                clock.step()
            else:
                clock.now = end
                return

    def _expire(self) -> None:
        if self.coordinator.up:
            self.transactions.expire()
        self.clock.after(EXPIRE_EVERY_MS, self._expire)

    # Requests ---------------------------------------------------------------------------------------------------

    def send(self, what: str, handle: Callable[[], Any], connection: str | None = None) -> Answer:
        """Send a request. It gets to the broker whatever becomes of who sent it; the answer may get lost.

        A request of a `connection` doesn't overtake those before it. The answer's errors: what `handle` raises, and
        those of a client that gets no answer.
        """
        rng, clock = self.rng, self.clock
        answer, fate = self.unanswered(what), self.faults.of_request(rng)
        there, back = rng.randrange(WAY_MS), rng.randrange(WAY_MS)
        if fate != "smooth":
            self.counts[fate] += 1
            self.note(fate, what)
        if fate == "late":
            late = rng.randrange(self.faults.late_ms)
            there, back = (there + late, back) if rng.random() < 0.5 else (there, back + late)
        if connection is not None:
            there = max(there, self._arrivals[connection] - clock.now)
            self._arrivals[connection] = clock.now + there
        if fate != "lost":
            clock.after(there, lambda: self._handle(handle, answer, back, fate))
        return answer

    def unanswered(self, what: str) -> Answer:
        """A request that gets nowhere."""
        answer = Answer()
        self.clock.after(TIMEOUT_MS, lambda: answer.give(error=RequestTimeoutError(f"{what}: no answer")))
        return answer

    def _handle(self, handle: Callable[[], Any], answer: Answer, back: int, fate: str) -> None:
        value, error = None, None
        if not self.coordinator.up:
            error, back = ConnectionLostError("the broker is down"), RECONNECT_MS
        elif fate == "refused":
            error = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            try:
                value = handle()
            except (KafkaError, ClientError, ConcurrentTransactionsError) as refusal:
                error = refusal
        if fate != "answer_lost":
            self.clock.after(back, lambda: answer.give(value, error))

    def ask(self, what: str, handle: Callable[[], Any]) -> Steps:
        """Send a request and wait for the answer; one that comes too early is sent again.

        Raises:
            KafkaError, ClientError: as `send`.
        """
        for _ in range(200):
            try:
                return (yield self.send(what, handle))
            except ConcurrentTransactionsError:
                yield AGAIN_MS
        raise InvariantError(f"{what}: a transaction is never over")

    def insist(self, what: str, handle: Callable[[], Any]) -> Steps:
        """Ask, and ask again for a while when that is refused or gets lost, as administrators' clients do.

        Raises:
            KafkaError, ClientError: it was in vain.
        """
        deadline = self.clock.now + INSIST_MS
        while True:
            try:
                return (yield from self.ask(what, handle))
            except (KafkaError, ClientError):
                if self.clock.now >= deadline:
                    raise
                yield AGAIN_MS

    def written(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        """High watermarks."""
        return {partition: self.logs[partition].end for partition in sorted(partitions)}

    def ends(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        """Last stable offsets."""
        found = {partition: self.logs[partition].stable for partition in sorted(partitions)}
        if self.rng.random() < self.faults.stale_ends:
            self.counts["stale ends"] += 1
            found = {partition: max(0, end - self.rng.randrange(20)) for partition, end in found.items()}
        return found
