"""Rival producers under two transactional ids, beside partitions that remember what ended where.

Clients start, recover, write, commit and abort; answers get lost, so requests come again; appends fail; transactions
take too long; markers are written late and in parts; ids expire; and the coordinator restarts at any point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kohort.coordinator.transactions import Markers, TopicPartition, Transaction, TransactionSettings, TransactionState
from kohort.coordinator.transactions.states import ENDED, PREPARED, TRANSITIONS
from kohort.coordinator.transactions.transaction import LAST_EPOCH
from kohort.protocol.errors import ErrorCode
from tests.coordinator.transactions.fakes import P0, P1, P2, Coordinator

NAMES = ["x", "y"]
CLIENTS = 4
PLACES = [P0, P1, P2]
OUTCOMES = {ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR}
"""Answers after which a client goes on with what it has; any other tells it to start over."""


numbers = st.integers(0, CLIENTS - 1)
seldom = st.sampled_from([False, False, False, False, True])


@dataclass
class Client:
    """A producer, and what it believes."""

    number: int
    name: str
    v2: bool
    producer: tuple[int, int] | None = None
    ending: bool | None = None  # an EndTxn is under way: its outcome
    wrote_in: int | None = None  # serial number of the transaction that it wrote in last
    unheard: int | None = None  # serial number of the transaction whose end it did not hear of


class Model(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator(
            TransactionSettings(transaction_max_timeout_ms=5000, transactional_id_expiration_ms=30_000)
        )
        self.coordinator.on_append = self.appended
        self.clients = [Client(n, NAMES[n % 2], v2=n in (0, 1, 2)) for n in range(CLIENTS)]
        self.serial = 0
        self.current: dict[str, int] = {}  # serial number of the newest transaction, by transactional id
        self.partitions: dict[int, set[TopicPartition]] = {}  # of each transaction
        self.outcome: dict[int, bool] = {}  # decided transactions
        self.marked: dict[tuple[int, TopicPartition], bool] = {}  # where a transaction has its marker, and which
        self.data: dict[tuple[TopicPartition, int], int] = {}  # partition and producer id: transaction with open data
        self.epochs: dict[tuple[TopicPartition, int], int] = {}  # newest epoch that a partition has of a producer id
        self.owner: dict[str, int] = {}  # who was given the newest producer id and epoch
        self.given: dict[tuple[int, int], int] = {}  # to whom each was given
        self.appends = 0

    def appended(self, before: Transaction | None, after: Transaction | None) -> None:
        self.appends += 1
        if after is None:
            assert before is not None
            self.owner.pop(before.transactional_id, None)
            return
        name = after.transactional_id
        if before is not None:
            assert after.state in TRANSITIONS[before.state]
            if before.producer_id == after.producer_id:
                assert after.producer_epoch >= before.producer_epoch
        assert 0 <= after.producer_epoch <= LAST_EPOCH + 1
        opened = before is None or before.state is not TransactionState.ONGOING
        if opened and after.state in {TransactionState.ONGOING, TransactionState.PREPARE_ABORT}:
            self.serial += 1
            self.current[name] = self.serial
        if after.state is TransactionState.ONGOING:
            serial = self.current[name]
            assert after.partitions >= self.partitions.get(serial, set())
            self.partitions[serial] = set(after.partitions)
        elif after.state in PREPARED:
            serial = self.current[name]
            assert serial not in self.outcome
            assert self.partitions.setdefault(serial, set()) == after.partitions
            self.outcome[serial] = after.state is TransactionState.PREPARE_COMMIT
        elif after.state in ENDED:
            serial = self.current[name]
            assert self.outcome[serial] is (after.state is TransactionState.COMPLETE_COMMIT)
            assert all(self.marked[serial, p] is self.outcome[serial] for p in self.partitions[serial])

    def requested(self, client: Client, appends: int) -> None:
        """A request of a client came to its answer: only the newest producer moves anything."""
        if self.appends > appends:
            assert self.owner.get(client.name) == client.number

    # Clients

    @rule(number=numbers, recover=st.booleans(), lost=seldom)
    def start(self, number: int, recover: bool, lost: bool) -> None:
        client = self.clients[number]
        held = client.producer if recover else None
        known = self.coordinator.shard.get(client.name) is not None
        appends = self.appends
        code, *given = self.coordinator.init(client.name, held=held or (-1, -1))
        if held is not None and known:
            self.requested(client, appends)
        if code == ErrorCode.NONE:
            producer = (given[0], given[1])
            assert self.given.setdefault(producer, number) == number
            self.owner[client.name] = number
            if not lost:
                client.producer, client.ending, client.wrote_in, client.unheard = producer, None, None, None
        elif code not in OUTCOMES:
            assert code == ErrorCode.PRODUCER_FENCED
            assert held is not None
            client.producer = None

    @rule(number=numbers, places=st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True), lost=seldom)
    def write(self, number: int, places: list[TopicPartition], lost: bool) -> None:
        client = self.clients[number]
        if client.producer is None:
            self.start(number=number, recover=False, lost=lost)
        if client.ending is not None:
            return
        for partition in places:
            if client.producer is not None:
                self.write_to(client, client.producer, partition, lost)

    def write_to(self, client: Client, producer: tuple[int, int], partition: TopicPartition, lost: bool) -> None:
        appends = self.appends
        if not client.v2:
            (code,) = self.coordinator.add(producer, partition, name=client.name)
            self.requested(client, appends)
            if lost or code != ErrorCode.NONE:
                self.answered(client, code)
                return
        (code,) = self.coordinator.verify(producer, partition, add=client.v2, name=client.name)
        self.requested(client, appends)
        self.answered(client, code)
        if code != ErrorCode.NONE:
            return
        assert self.owner[client.name] == client.number
        assert self.epochs.get((partition, producer[0]), -1) <= producer[1]
        serial = self.current[client.name]
        assert partition in self.partitions[serial]
        assert serial not in self.outcome
        self.epochs[partition, producer[0]] = producer[1]
        assert self.data.setdefault((partition, producer[0]), serial) == serial
        assert client.wrote_in in (None, serial)  # what it takes for one transaction is one
        client.wrote_in = serial

    @rule(number=numbers, commit=st.booleans(), lost=seldom)
    def end(self, number: int, commit: bool, lost: bool) -> None:
        client = self.clients[number]
        if client.producer is None:
            return
        commit = commit if client.ending is None else client.ending
        appends = self.appends
        code, *following = self.coordinator.end(
            client.producer, commit, name=client.name, version=5 if client.v2 else 4
        )
        self.requested(client, appends)
        client.ending = commit
        if code == ErrorCode.NONE and client.wrote_in is not None:
            assert self.outcome[client.wrote_in] is commit
        if client.v2 and code == ErrorCode.NONE and self.appends > appends:
            assert following[1] <= LAST_EPOCH
        if client.unheard is not None and self.owner.get(client.name) == number:
            assert code in OUTCOMES
        if lost:
            if code == ErrorCode.NONE and self.owner.get(client.name) == number:
                client.unheard = self.current[client.name]
            return
        client.unheard = None
        if code == ErrorCode.NONE:
            client.ending, client.wrote_in = None, None
            if client.v2:
                client.producer = (following[0], following[1])
        else:
            self.answered(client, code)

    def answered(self, client: Client, code: int) -> None:
        if code not in OUTCOMES:
            assert code in {
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                ErrorCode.INVALID_TXN_STATE,
                ErrorCode.TRANSACTION_ABORTABLE,
            }
            client.producer = client.ending = client.wrote_in = client.unheard = None

    # The world

    @rule(which=st.integers(0, 3), places=st.lists(st.sampled_from(PLACES), unique=True), keep=seldom)
    def write_some_markers(self, which: int, places: list[TopicPartition], keep: bool) -> None:
        """Some of the markers are written; who writes them may not hear of it, and tries again."""
        due = self.coordinator.due
        if due:
            self.write_out(due[which % len(due)], places)
            if not keep:
                del due[which % len(due)]

    @rule()
    def write_all_markers(self) -> None:
        due = self.coordinator.due
        while due:
            self.write_out(due.popleft(), PLACES)

    def write_out(self, markers: Markers, places: list[TopicPartition]) -> None:
        written = [partition for partition in self.coordinator.shard.pending_markers(markers) if partition in places]
        for partition in written:
            self.mark(markers, partition)
        step = self.coordinator.shard.markers_written(markers.transactional_id, written, self.coordinator.now)
        self.coordinator.run(step)

    def mark(self, markers: Markers, partition: TopicPartition) -> None:
        serial = self.current[markers.transactional_id]
        assert self.outcome[serial] is markers.commit
        assert self.marked.setdefault((serial, partition), markers.commit) is markers.commit
        place = partition, markers.producer_id
        assert self.data.pop(place, serial) == serial
        assert self.epochs.get(place, -1) <= markers.producer_epoch
        self.epochs[place] = markers.producer_epoch

    @rule(ms=st.sampled_from([10, 10, 5001, 10_000, 30_000]), expire=seldom)
    def wait(self, ms: int, expire: bool) -> None:
        coordinator = self.coordinator
        coordinator.now += ms
        coordinator.run(coordinator.shard.abort_timed_out(coordinator.now))
        if expire:
            coordinator.run(coordinator.shard.expire(coordinator.now))

    @rule(fails=seldom)
    def restart(self, fails: bool) -> None:
        """After which appends fail, or no longer do."""
        self.coordinator.restart()
        self.coordinator.fails = ErrorCode.NOT_COORDINATOR if fails else None

    @rule(name=st.sampled_from(NAMES))
    def epochs_pass(self, name: str) -> None:
        """All but the last two, by clients that are no more."""
        transaction = self.coordinator.shard.get(name)
        if transaction is None or transaction.state is not TransactionState.EMPTY or transaction.producer_epoch > 3:
            return
        jumped: Any = transaction.with_producer(
            transaction.producer._replace(epoch=LAST_EPOCH - 1), transaction.timeout_ms, self.coordinator.now
        )
        fails, self.coordinator.fails = self.coordinator.fails, None
        step = self.coordinator.shard.expire(0)
        step.records.append(jumped.record())
        self.coordinator.run(step)
        self.coordinator.fails = fails
        self.owner.pop(name, None)

    @invariant()
    def a_restart_changes_nothing(self) -> None:
        live = {transaction.transactional_id: transaction for transaction in self.coordinator.shard.transactions()}
        again = {
            transaction.transactional_id: transaction for transaction in self.coordinator.replayed().transactions()
        }
        assert live == again

    @invariant()
    def open_data_belongs_to_a_transaction_that_will_end(self) -> None:
        open_now = {
            self.current[transaction.transactional_id]
            for transaction in self.coordinator.shard.transactions()
            if transaction.state in PREPARED | {TransactionState.ONGOING}
        }
        assert set(self.data.values()) <= open_now

    def teardown(self) -> None:
        """Left alone, every transaction ends, and readers of committed data go on."""
        coordinator = self.coordinator
        coordinator.fails = None
        for _ in range(2):
            coordinator.now += 10_001
            coordinator.run(coordinator.shard.abort_timed_out(coordinator.now))
            self.write_all_markers()
        states = {transaction.state for transaction in coordinator.shard.transactions()}
        assert states <= ENDED | {TransactionState.EMPTY}
        assert self.data == {}


Model.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
TestTransactions = Model.TestCase


@pytest.mark.parametrize("seed", range(8))
def test_a_long_walk(seed: int) -> None:
    """What takes many moves to go wrong, and what hypothesis doesn't come upon."""
    random = Random(seed)

    def seldom() -> bool:
        return random.random() < 0.1

    def some() -> list[TopicPartition]:
        return random.sample(PLACES, random.randint(1, len(PLACES)))

    def client() -> int:
        return random.randrange(CLIENTS)

    model = Model()
    moves: dict[Callable[[], object], float] = {
        lambda: model.start(number=client(), recover=random.random() < 0.5, lost=seldom()): 3,
        lambda: model.write(number=client(), places=some(), lost=seldom()): 20,
        lambda: model.end(number=client(), commit=random.random() < 0.6, lost=seldom()): 12,
        lambda: model.write_some_markers(which=random.randrange(4), places=some(), keep=seldom()): 8,
        lambda: model.write_all_markers(): 8,
        lambda: model.wait(ms=random.choice([10, 5001, 10_000]), expire=seldom()): 2,
        lambda: model.wait(ms=30_000, expire=True): 0.1,
        lambda: model.restart(fails=seldom()): 1,
        lambda: model.epochs_pass(name=random.choice(NAMES)): 1,
    }
    for step, move in enumerate(random.choices(list(moves), list(moves.values()), k=1000)):
        move()
        model.open_data_belongs_to_a_transaction_that_will_end()
        if step % 50 == 0:
            model.a_restart_changes_nothing()
    assert len(model.outcome) > 50
    model.teardown()
