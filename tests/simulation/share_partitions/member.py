"""A member of the share group: fetches, works, acknowledges in every way there is; answers to it may get lost."""

from __future__ import annotations

from random import Random

from kohort.coordinator.share_partition import AckBatch, AcknowledgeType, Acquired, AcquireMode
from kohort.protocol.errors import ErrorCode
from tests.simulation.share_partitions.world import LOCK_MS, Broker

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
GAP, RENEW = AcknowledgeType.GAP, AcknowledgeType.RENEW


REQUEST_TIMEOUT_MS = 500


class Member:
    """Attributes:
    calm: it accepts all it gets, and does so in time.
    """

    def __init__(self, name: str, broker: Broker, rng: Random) -> None:
        self.name = name
        self.broker = broker
        self.rng = rng
        self.calm = False
        self.runs = True
        self.mode = rng.choice(list(AcquireMode))
        self.generation = 0

    def start(self) -> None:
        self.runs = True
        self.generation += 1
        self._later(1, self.fetch)

    def stop(self, crash: bool) -> None:
        """Without a word, or in good order."""
        self.runs = False
        self.generation += 1
        if not crash:
            self.broker.leave(self.name)

    def fetch(self) -> None:
        acquired = self.broker.fetch(self.name, self.rng.choice([1, 3, 10, 40]), self.mode)
        unheard = not self.calm and self.rng.random() < 0.05
        if unheard or not acquired:
            self._later(self.rng.choice([5, 20, 100]), self.fetch)
        else:
            self._later(self._work(), lambda: self.acknowledge(acquired))

    def acknowledge(self, acquired: list[Acquired]) -> None:
        rest: list[Acquired] = []
        batches: list[AckBatch] = []
        for first, last, count in acquired:
            if self.calm or self.rng.random() < 0.5:
                batches.append(AckBatch(first, last, [self._type()]))
            elif self.rng.random() < 0.5:
                batches.append(AckBatch(first, last, [self._type() for _ in range(first, last + 1)]))
            else:
                middle = self.rng.randint(first, last)
                batches.append(AckBatch(first, middle, [self._type()]))
                if middle < last:
                    rest.append(Acquired(middle + 1, last, count))
            kept = batches[-1]
            if len(kept.types) == 1 and kept.types[0] == RENEW:
                rest.append(Acquired(kept.first_offset, kept.last_offset, count))

        if not self.calm and self.rng.random() < 0.05:
            end = max(batch.last_offset for batch in batches)
            batches.append(AckBatch(end + 1, end + 2, [ACCEPT]))  # of others, or of nobody: all is refused
        generation = self.generation
        waits = not rest

        def fetch_next() -> None:
            nonlocal waits
            if waits:
                waits = False
                self.fetch()

        def answered(_: ErrorCode) -> None:
            if self.generation == generation:
                self._later(self.rng.choice([1, 10]), fetch_next)

        self.broker.acknowledge(self.name, batches, answered)
        self._later(REQUEST_TIMEOUT_MS, fetch_next)
        if not self.calm and self.rng.random() < 0.05:
            self.broker.acknowledge(self.name, batches, lambda code: None)  # sent twice
        if rest and self.generation == generation:
            self._later(self._work(), lambda: self.acknowledge(rest))

    def _type(self) -> AcknowledgeType:
        if self.calm:
            return ACCEPT
        return self.rng.choices([ACCEPT, RELEASE, REJECT, GAP, RENEW], [10, 5, 2, 1, 3])[0]

    def _work(self) -> int:
        return 5 if self.calm else self.rng.choice([1, 10, 50, 300, LOCK_MS - 1, LOCK_MS + 200])

    def _later(self, ms: int, what: object) -> None:
        generation = self.generation

        def event() -> None:
            if self.generation == generation:
                assert callable(what)
                what()

        self.broker.clock.after(ms, event)
