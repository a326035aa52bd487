"""A model of the transaction coordinator: producer ids and epochs, fencing, two phases, timeouts (KIP-98, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from kohort.client.errors import FencedError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import GROUP
from tests.simulation.runtime.clock import Clock
from tests.simulation.runtime.coordinator import Coordinator
from tests.simulation.runtime.logs import Logs, Outcome, Record


class Identity(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int
    epoch: int


class ConcurrentTransactionsError(Exception):
    """The one before is being ended: ask again."""


@dataclass(eq=False)
class Transaction:
    """One transaction.

    Attributes:
        producer: who it is of.
        began: ms since 1970.
        outcome: what becomes of it.
        partitions: what it wrote, by partition.
        offsets: what it commits, with metadata.
        unmarked: markers that lack.
    """

    producer: Identity
    began: int
    outcome: Outcome = field(default_factory=Outcome)
    partitions: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    offsets: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    unmarked: int = 0


@dataclass(eq=False)
class Producer:
    """A transactional id.

    Attributes:
        identity: of who has it.
        open: its transaction, until that is decided.
        ending: one that is decided, and not marked everywhere.
        ended: who ended the one before, and whether it counts: the answer may have been lost.
    """

    identity: Identity
    open: Transaction | None = None
    ending: Transaction | None = None
    ended: tuple[Identity, bool] | None = None


class Transactions:
    """All transactional ids.

    Args:
        timeout_ms: after which one that is open is aborted.
        marked_ms: within which markers are written.
        decided: told of each transaction that counts, when that is decided.
    """

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        logs: Logs,
        coordinator: Coordinator,
        timeout_ms: int,
        marked_ms: int,
        decided: Callable[[str, Transaction], None],
    ) -> None:
        self._clock, self._rng, self._logs, self._coordinator = clock, rng, logs, coordinator
        self._timeout_ms, self._marked_ms, self._decided = timeout_ms, marked_ms, decided
        self.producers: dict[str, Producer] = {}

    def start(self, name: str) -> Identity:
        """InitProducerId: fence who has the id, and abort what it has open.

        Raises:
            ConcurrentTransactionsError: a transaction is being ended.
        """
        producer = self.producers.get(name)
        if producer is None:
            producer = self.producers[name] = Producer(Identity(len(self.producers), -1))
        if producer.ending is not None:
            raise ConcurrentTransactionsError
        if producer.open is not None:
            self._fence(name, producer)
            raise ConcurrentTransactionsError
        producer.identity = Identity(producer.identity.producer_id, producer.identity.epoch + 1)
        producer.ended = None
        return producer.identity

    def write(self, name: str, identity: Identity, partition: TopicPartition, records: list[Record]) -> int:
        """Produce; the offset of the first record."""
        transaction = self._transaction(name, identity)
        transaction.partitions.setdefault(partition, []).extend(records)
        log = self._logs[partition]
        first = log.end
        for record in records:
            log.append(record, transaction.outcome)
        return first

    def commit_offsets(
        self, name: str, identity: Identity, offsets: dict[TopicPartition, tuple[int, str]], member_id: str, epoch: int
    ) -> ErrorCode:
        """TxnOffsetCommit: the group's coordinator says whether it may."""
        transaction = self._transaction(name, identity)
        topic, partition = TxnOffsetCommitRequest.Topic, TxnOffsetCommitRequest.Topic.Partition
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=GROUP,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[
                topic(
                    name=at.topic,
                    partitions=[
                        partition(partition_index=at.partition, committed_offset=offset, committed_metadata=text)
                    ],
                )
                for at, (offset, text) in offsets.items()
            ],
        )
        owned = [at for at in offsets if self._coordinator.pending(at)]
        code = self._coordinator.txn_commit(request)
        if not code and owned:
            raise InvariantError(f"one owner: {name} commits {owned}, and so does another one at the same time")
        if not code:
            transaction.offsets.update(offsets)
        return code

    def end(self, name: str, identity: Identity, *, commit: bool) -> Identity:
        """EndTxn; the identity from now on. Who asks again, since the answer got lost, is told again."""
        producer = self.producers[name]
        if producer.ended == (identity, commit):
            return producer.identity
        if identity != producer.identity:
            raise FencedError(f"{name}: {identity}, not {producer.identity}")
        if producer.open is not None:
            self._decide(name, producer, commit)
        elif commit:
            raise InvariantError(f"{name} commits, and nothing is open")
        else:
            producer.identity = Identity(identity.producer_id, identity.epoch + 1)
        producer.ended = identity, commit
        return producer.identity

    def open_ones(self) -> list[str]:
        """Transactional ids whose transactions are open."""
        return [name for name, producer in self.producers.items() if producer.open is not None]

    def expire(self) -> None:
        """Abort transactions that take too long."""
        for name, producer in self.producers.items():
            if producer.open is not None and producer.open.began + self._timeout_ms <= self._clock.now:
                self._fence(name, producer)

    # ------------------------------------------------------------------------------------------------------------

    def _transaction(self, name: str, identity: Identity) -> Transaction:
        producer = self.producers[name]
        if identity != producer.identity:
            raise FencedError(f"{name}: {identity}, not {producer.identity}")
        if producer.ending is not None:
            raise ConcurrentTransactionsError
        if producer.open is None:
            producer.open = Transaction(identity, self._clock.now)
            producer.ended = None
        return producer.open

    def _fence(self, name: str, producer: Producer) -> None:
        self._decide(name, producer, False)
        producer.ended = None

    def _decide(self, name: str, producer: Producer, commit: bool) -> None:
        """Phase one: it counts or not. The markers follow, each in its time."""
        transaction, producer.open = producer.open, None
        assert transaction is not None
        transaction.outcome.committed = commit
        producer.ending = transaction
        producer.identity = Identity(transaction.producer.producer_id, transaction.producer.epoch + 1)
        if commit:
            self._decided(name, transaction)
        transaction.unmarked = len(transaction.partitions) + 1
        for partition in transaction.partitions:
            self._later(producer, transaction, lambda at=partition: self._logs[at].mark(transaction.outcome))
        self._later(producer, transaction, lambda: self._coordinator.mark(*transaction.producer, commit))

    def _later(self, producer: Producer, transaction: Transaction, mark: Callable[[], None]) -> None:
        def marked() -> None:
            mark()
            transaction.unmarked -= 1
            if not transaction.unmarked:
                producer.ending = None

        self._clock.after(self._rng.choice((0, 5, self._rng.randrange(self._marked_ms))), marked)
