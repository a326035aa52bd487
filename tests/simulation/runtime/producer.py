"""A transactional producer, and the committer that opens it when it is needed, as `epoch_committer` does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from kohort.client.errors import (
    ClientError,
    CommitFailedError,
    FencedError,
    NotDeliveredError,
    RequestTimeoutError,
    TransactionAbortableError,
)
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.spark.runtime.errors import RestartFromCommittedError
from tests.simulation.books import InvariantError
from tests.simulation.runtime.clock import Steps
from tests.simulation.runtime.cluster import Cluster
from tests.simulation.runtime.jobs import Made
from tests.simulation.runtime.logs import Record
from tests.simulation.runtime.transactions import ConcurrentTransactionsError, Identity

_MOVED_ON = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND})


class Producer:
    """A producer. Its transaction is "" (none), "open", "ending" (a commit was asked for), or "failed"."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        self.identity = Identity(-1, -1)
        self.transaction = ""

    def start(self) -> Steps:
        """Get an identity; who had the name is fenced. Raises KafkaError, ClientError."""
        self.identity = yield from self.cluster.ask(
            f"start {self.name}", lambda: self.cluster.transactions.start(self.name)
        )

    def begin(self) -> None:
        """Open a transaction."""
        if self.transaction:
            raise InvariantError(f"{self.name} begins a transaction, and has one that is {self.transaction}")
        self.transaction = "open"

    def send(self, partition: TopicPartition, records: list[Record]) -> Steps:
        """Send records; the offset of the first. What may have been written, and isn't known, fails the transaction."""
        identity, transactions, cluster = self.identity, self.cluster.transactions, self.cluster
        if cluster.rng.random() < cluster.faults.fatal:
            cluster.counts["fatal"] += 1
            raise NotDeliveredError({partition.topic: len(records)}, "") from KafkaError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
        try:
            first: int = yield from self.cluster.ask(
                f"produce {self.name} {partition}",
                lambda: transactions.write(self.name, identity, partition, records),
            )
        except FencedError:
            raise
        except (KafkaError, ClientError) as error:
            raise NotDeliveredError({partition.topic: len(records)}, error) from error
        return first

    def send_offsets(self, offsets: dict[TopicPartition, tuple[int, str]], member: StreamsMembershipManager) -> Steps:
        """Send offsets, in the name of the member as it is now."""
        who, identity, transactions = self.who(member), self.identity, self.cluster.transactions
        code: ErrorCode = yield from self.cluster.ask(
            f"offsets {self.name}",
            lambda: transactions.commit_offsets(self.name, identity, offsets, who.member_id, who.generation),
        )
        if code in _MOVED_ON:
            raise CommitFailedError(code.name)
        if code:
            raise KafkaError(code)

    @staticmethod
    def who(member: StreamsMembershipManager) -> GroupMetadata:
        """In whose name offsets are committed: the member's epoch may have changed since the epoch began."""
        return member.group_metadata()

    def commit(self) -> Steps:
        """Commit. Raises RequestTimeoutError if nobody says whether it counts: ask again."""
        cluster, identity = self.cluster, self.identity
        if self.transaction == "open" and cluster.rng.random() < cluster.faults.commit:
            cluster.counts["commit refused"] += 1
            self.transaction = "failed"
            raise TransactionAbortableError("a batch was refused")
        self.transaction = "ending"
        try:
            self.identity = yield from cluster.ask(f"commit {self.name}", self._end(identity))
        except KafkaError as error:
            raise RequestTimeoutError(str(error)) from error  # the client asks again until then
        self.transaction = ""

    def _end(self, identity: Identity) -> Callable[[], Identity]:
        """The coordinator commits; perhaps somebody fences the producer before, or after that."""
        cluster, transactions = self.cluster, self.cluster.transactions

        def end() -> Identity:
            if cluster.rng.random() >= cluster.faults.fenced:
                return transactions.end(self.name, identity, commit=True)
            cluster.counts["fenced"] += 1
            cluster.note(self.name, "is fenced")
            if cluster.rng.random() < 0.5:
                transactions.end(self.name, identity, commit=True)
            with contextlib.suppress(ConcurrentTransactionsError):
                transactions.start(self.name)
            transactions.producers[self.name].ended = None
            raise FencedError(self.name)

        return end

    def abort(self) -> Steps:
        """Abort what is open; what may be committed already can't be."""
        if self.transaction in ("open", "failed"):
            identity = self.identity
            self.identity = yield from self.cluster.ask(
                f"abort {self.name}", lambda: self.cluster.transactions.end(self.name, identity, commit=False)
            )
            self.transaction = ""


class Committer:
    """Sends and commits epochs. Raises as a producer does.

    Args:
        make: a new producer.
        member: in whose name offsets are committed.
    """

    def __init__(self, make: Callable[[], Producer], member: StreamsMembershipManager) -> None:
        self._make, self._member = make, member
        self.producer: Producer | None = None
        self._opening = False
        self._first: dict[TopicPartition, int] = {}

    def open(self) -> Steps:
        """Open the producer, unless it is. One at a time."""
        while self._opening:
            yield 10
        self._opening = True
        try:
            if self.producer is None:
                producer = self._make()
                yield from producer.start()
                self.producer = producer
        finally:
            self._opening = False

    def send(self, made: Made, offsets: Mapping[TopicPartition, tuple[int, str]]) -> Steps:
        """Begin a transaction, send what an epoch made, and its offsets."""
        yield from self.open()
        producer = self.producer
        assert producer is not None
        producer.begin()
        self._first = {}
        for partition, records in made.records.items():
            self._first[partition] = yield from producer.send(partition, records)
        yield from producer.send_offsets(dict(offsets), self._member)

    def commit(self, made: Made) -> Steps:
        """Commit; where changelogs are after what was sent."""
        if self.producer is None:
            raise RestartFromCommittedError("the producer is closed")
        yield from self.producer.commit()
        return {changelog: self._first[changelog] + len(made.records[changelog]) for changelog in made.rows}

    def abort(self) -> Steps:
        """Abort the transaction; a producer that can't is closed: the next with its name does."""
        if self.producer is not None:
            try:
                yield from self.producer.abort()
            except (KafkaError, ClientError):
                self.producer = None

    def close(self, *, patient: bool) -> Steps:
        """Close the producer: a patient one aborts its transaction."""
        producer, self.producer = self.producer, None
        if producer is not None and patient:
            with contextlib.suppress(KafkaError, ClientError):
                yield from producer.abort()
        yield 1
