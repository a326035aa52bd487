"""What a producer does in transactions, and how these end."""

from __future__ import annotations

import pytest

from kohort.coordinator.transactions import TopicPartition, Transaction, TransactionState
from kohort.coordinator.transactions.errors import verification_error
from kohort.coordinator.transactions.states import TRANSITIONS
from kohort.coordinator.transactions.transaction import LAST_EPOCH
from kohort.protocol.errors import ErrorCode
from tests.coordinator.transactions.fakes import P0, P1, P2, Coordinator

OFFSETS = TopicPartition("__consumer_offsets", 7)
V1, V2 = 4, 5


@pytest.fixture
def coordinator() -> Coordinator:
    """With a producer that has id 101 and epoch 0."""
    coordinator = Coordinator()
    coordinator.init()
    return coordinator


def partitions(coordinator: Coordinator) -> set[TopicPartition]:
    return {TopicPartition(t.topic, p) for t in coordinator.shard.describe("x").topics for p in t.partitions}


# Partitions


def test_the_first_partition_opens_a_transaction(coordinator: Coordinator) -> None:
    assert coordinator.add((101, 0), P0, P1) == [0, 0]
    assert coordinator.state() == "Ongoing"
    assert partitions(coordinator) == {P0, P1}


def test_a_transaction_began_with_its_first_partition(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    began = coordinator.now
    coordinator.now += 10
    coordinator.add((101, 0), P1)
    assert coordinator.shard.describe("x").transaction_start_time_ms == began
    assert partitions(coordinator) == {P0, P1}


def test_a_partition_that_takes_part_is_not_written_again(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0, P1)
    before = len(coordinator.entries)
    assert coordinator.add((101, 0), P1) == [0]
    assert len(coordinator.entries) == before


def test_offsets_take_part_too(coordinator: Coordinator) -> None:
    assert coordinator.add_offsets((101, 0)) == 0
    assert partitions(coordinator) == {OFFSETS}


@pytest.mark.parametrize(
    ("producer", "code"),
    [
        ((102, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((101, 1), ErrorCode.PRODUCER_FENCED),
        ((101, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_only_the_producer_itself_writes(coordinator: Coordinator, producer: tuple[int, int], code: ErrorCode) -> None:
    assert coordinator.add(producer, P0) == [code]
    assert coordinator.add_offsets(producer) == code
    assert coordinator.verify(producer, P0) == coordinator.verify(producer, P0, add=True) == [code]
    assert coordinator.end(producer, commit=False).code == code


def test_an_unknown_transactional_id_has_no_producer(coordinator: Coordinator) -> None:
    assert coordinator.add((101, 0), P0, name="y") == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert coordinator.end((101, 0), commit=True, name="y").code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_without_a_transactional_id_there_is_nothing_to_do(coordinator: Coordinator) -> None:
    assert coordinator.add((101, 0), P0, name="") == [ErrorCode.INVALID_REQUEST]
    assert coordinator.add_offsets((101, 0), name="") == ErrorCode.INVALID_REQUEST
    assert coordinator.end((101, 0), commit=True, name="").code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [V1, V2])
def test_a_transaction_that_ends_takes_no_partitions(coordinator: Coordinator, version: int) -> None:
    coordinator.add((101, 0), P0)
    coordinator.end((101, 0), commit=True, version=version)
    epoch = 0 if version == V1 else 1
    assert coordinator.add((101, epoch), P1) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert coordinator.verify((101, epoch), P1, add=True) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert coordinator.verify((101, epoch), P0) == [ErrorCode.CONCURRENT_TRANSACTIONS]


def test_a_failed_append_adds_nothing(coordinator: Coordinator) -> None:
    coordinator.fails = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.add((101, 0), P0, P1) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert coordinator.add_offsets((101, 0)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.state() == "Empty"


# Verification (KIP-890)


def test_a_partition_that_takes_no_part_is_not_verified(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    assert coordinator.verify((101, 0), P0, P1) == [0, ErrorCode.TRANSACTION_ABORTABLE]
    assert partitions(coordinator) == {P0}


def test_without_a_transaction_nothing_is_verified(coordinator: Coordinator) -> None:
    assert coordinator.verify((101, 0), P0) == [ErrorCode.TRANSACTION_ABORTABLE]


def test_producing_may_open_a_transaction(coordinator: Coordinator) -> None:
    assert coordinator.verify((101, 0), P0, add=True) == [0]
    assert coordinator.state() == "Ongoing"


@pytest.mark.parametrize(
    ("found", "abortable", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, True, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, False, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, False, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_what_a_client_is_told_of_a_verification(found: ErrorCode, abortable: bool, told: ErrorCode) -> None:
    assert verification_error(found, abortable=abortable) is told


# The end


@pytest.mark.parametrize("commit", [True, False])
def test_with_its_last_marker_a_transaction_is_over(coordinator: Coordinator, commit: bool) -> None:
    coordinator.add((101, 0), P0, P1)
    coordinator.end((101, 0), commit, version=V1)
    (markers,) = coordinator.due
    assert coordinator.state() == ("PrepareCommit" if commit else "PrepareAbort")
    assert (markers.partitions, markers.commit, markers.coordinator_epoch) == ((P0, P1), commit, 5)

    coordinator.run(coordinator.shard.markers_written("x", [P1], coordinator.now))
    assert partitions(coordinator) == {P0}
    coordinator.run(coordinator.shard.markers_written("x", [P0], coordinator.now))
    assert coordinator.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert partitions(coordinator) == set()


def test_a_transaction_v1_keeps_its_epoch(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    assert coordinator.end((101, 0), commit=True, version=V1) == (0, 101, 0)
    (markers,) = coordinator.write_markers()
    assert (markers.producer_id, markers.producer_epoch, markers.transaction_version) == (101, 0, 0)
    assert coordinator.add((101, 0), P0) == [0]


def test_a_transaction_v2_takes_the_next_epoch(coordinator: Coordinator) -> None:
    coordinator.verify((101, 0), P0, add=True)
    assert coordinator.end((101, 0), commit=True) == (0, 101, 1)
    (markers,) = coordinator.write_markers()
    assert (markers.producer_id, markers.producer_epoch, markers.transaction_version) == (101, 1, 2)
    assert coordinator.verify((101, 0), P0, add=True) == [ErrorCode.PRODUCER_FENCED]
    assert coordinator.verify((101, 1), P0, add=True) == [0]


def test_after_the_last_epoch_a_transaction_v2_takes_the_next_producer_id(coordinator: Coordinator) -> None:
    transaction = Transaction(
        "x", 101, LAST_EPOCH, 5000, TransactionState.ONGOING, coordinator.now, coordinator.now, frozenset({P0})
    )
    coordinator.shard.replay(*transaction.record())
    assert coordinator.end((101, LAST_EPOCH), commit=True) == (0, 102, 0)
    (markers,) = coordinator.write_markers()
    assert (markers.producer_id, markers.producer_epoch) == (101, LAST_EPOCH + 1)
    ended = coordinator.shard.get("x")
    assert ended is not None
    assert (ended.producer, ended.previous_producer_id, ended.next_producer_id) == ((102, 0), 101, -1)
    assert coordinator.end((101, LAST_EPOCH), commit=True) == (0, 102, 0)
    assert coordinator.end((101, LAST_EPOCH), commit=False).code == ErrorCode.INVALID_TXN_STATE
    assert coordinator.init(held=(101, LAST_EPOCH)) == (0, 102, 0)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [V1, V2])
def test_the_end_is_asked_for_again(coordinator: Coordinator, commit: bool, version: int) -> None:
    coordinator.add((101, 0), P0)
    first = coordinator.end((101, 0), commit, version=version)
    assert coordinator.end((101, 0), commit, version=version).code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.end((101, 0), not commit, version=version).code == ErrorCode.INVALID_TXN_STATE
    coordinator.write_markers()
    before = len(coordinator.entries)
    assert coordinator.end((101, 0), commit, version=version) == first
    assert coordinator.end((101, 0), not commit, version=version).code == ErrorCode.INVALID_TXN_STATE
    assert len(coordinator.entries) == before


def test_there_is_nothing_to_end_v1(coordinator: Coordinator) -> None:
    for commit in (True, False):
        assert coordinator.end((101, 0), commit, version=V1).code == ErrorCode.INVALID_TXN_STATE


def test_there_is_nothing_to_commit_v2(coordinator: Coordinator) -> None:
    assert coordinator.end((101, 0), commit=True).code == ErrorCode.INVALID_TXN_STATE
    coordinator.verify((101, 0), P0, add=True)
    coordinator.end((101, 0), commit=True)
    coordinator.write_markers()
    assert coordinator.end((101, 1), commit=True).code == ErrorCode.INVALID_TXN_STATE


def test_an_abort_without_a_transaction_takes_an_epoch_v2(coordinator: Coordinator) -> None:
    assert coordinator.end((101, 0), commit=False) == (0, 101, 1)
    (markers,) = coordinator.write_markers()
    assert markers.partitions == ()
    assert coordinator.state() == "CompleteAbort"
    assert coordinator.end((101, 0), commit=False) == (0, 101, 1)
    assert coordinator.end((101, 1), commit=False) == (0, 101, 2)


def test_an_abort_after_a_commit_takes_an_epoch_v2(coordinator: Coordinator) -> None:
    coordinator.verify((101, 0), P0, add=True)
    coordinator.end((101, 0), commit=True)
    coordinator.write_markers()
    assert coordinator.end((101, 1), commit=False) == (0, 101, 2)


def test_with_an_epoch_to_come_a_producer_is_fenced_v2(coordinator: Coordinator) -> None:
    coordinator.verify((101, 0), P0, add=True)
    coordinator.end((101, 0), commit=True)
    assert coordinator.end((101, 1), commit=True).code == ErrorCode.PRODUCER_FENCED


def test_a_failed_append_leaves_the_transaction_open(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.fails = ErrorCode.NOT_COORDINATOR
    assert coordinator.end((101, 0), commit=True) == (ErrorCode.NOT_COORDINATOR, -1, -1)
    assert not coordinator.due
    coordinator.fails = None
    assert coordinator.end((101, 0), commit=False).code == 0


@pytest.mark.parametrize("version", [V1, V2])
def test_markers_are_not_due_in_the_transaction_that_follows(coordinator: Coordinator, version: int) -> None:
    coordinator.add((101, 0), P0)
    _, *producer = coordinator.end((101, 0), commit=True, version=version)
    (old,) = coordinator.due
    assert coordinator.shard.pending_markers(old) == (P0,)
    coordinator.write_markers()
    assert coordinator.shard.pending_markers(old) == ()
    coordinator.add((producer[0], producer[1]), P0)
    assert coordinator.shard.pending_markers(old) == ()
    coordinator.end((producer[0], producer[1]), commit=False, version=version)
    assert coordinator.shard.pending_markers(old) == ()


def test_markers_of_an_earlier_commit_are_not_due_in_a_later_one(coordinator: Coordinator) -> None:
    for epoch in range(2):
        coordinator.verify((101, epoch), P0, add=True)
        coordinator.end((101, epoch), commit=True)
        if epoch == 0:
            (old,) = coordinator.write_markers()
    assert coordinator.shard.pending_markers(old) == ()


def test_markers_are_not_due_where_they_are_written(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0, P1)
    coordinator.end((101, 0), commit=True)
    coordinator.run(coordinator.shard.markers_written("x", [P0], coordinator.now))
    assert coordinator.shard.pending_markers(coordinator.due[0]) == (P1,)


def test_markers_of_nothing_are_nothing(coordinator: Coordinator) -> None:
    assert not coordinator.run(coordinator.shard.markers_written("x", [P0], coordinator.now))
    assert not coordinator.run(coordinator.shard.markers_written("y", [P0], coordinator.now))


# Restart


@pytest.mark.parametrize("commit", [True, False])
def test_a_restart_goes_on_with_the_markers(coordinator: Coordinator, commit: bool) -> None:
    coordinator.add((101, 0), P0, P1)
    coordinator.end((101, 0), commit)
    coordinator.run(coordinator.shard.markers_written("x", [P0], coordinator.now))
    coordinator.restart()
    (markers,) = coordinator.write_markers()
    assert (markers.partitions, markers.commit, markers.producer_epoch) == ((P0, P1), commit, 1)
    assert coordinator.state() == ("CompleteCommit" if commit else "CompleteAbort")


def test_a_restart_leaves_an_open_transaction_open(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.restart()
    assert not coordinator.due
    assert coordinator.verify((101, 0), P0) == [0]


def test_a_fence_of_another_brokers_log_becomes_an_abort(coordinator: Coordinator) -> None:
    fence = Transaction(
        "x", 101, 1, 5000, TransactionState.PREPARE_EPOCH_FENCE, coordinator.now, coordinator.now, frozenset({P2})
    )
    coordinator.shard.replay(*fence.record())
    coordinator.shard.loaded(coordinator.now)
    (step,) = coordinator.shard.pending_steps
    coordinator.run(step)
    (markers,) = coordinator.write_markers()
    assert (markers.partitions, markers.commit, markers.producer_epoch) == ((P2,), False, 1)


def test_a_dead_id_of_another_brokers_log_is_forgotten(coordinator: Coordinator) -> None:
    coordinator.shard.replay(*Transaction("x", 101, 1, 5000, TransactionState.DEAD).record())
    assert coordinator.shard.get("x") is None


# States


def test_no_state_is_left_out() -> None:
    assert set(TRANSITIONS) == set(TransactionState)


@pytest.mark.parametrize("before", TransactionState)
@pytest.mark.parametrize("after", [TransactionState.EMPTY, TransactionState.ONGOING])
def test_moves_that_the_table_lacks_are_refused(before: TransactionState, after: TransactionState) -> None:
    transaction = Transaction("x", 101, 0, 5000, before)

    def move() -> Transaction:
        if after is TransactionState.EMPTY:
            return transaction.with_producer(transaction.producer, 5000, 0)
        return transaction.with_partitions([P0], 0, 0)

    if after in TRANSITIONS[before]:
        assert move().state is after
    else:
        with pytest.raises(ValueError, match=f"can't go from {before.label} to {after.label}"):
            move()


# Transactions of both versions under one id


def test_an_earlier_producer_of_v2_is_fenced_by_one_of_v1(coordinator: Coordinator) -> None:
    assert coordinator.init() == (0, 101, 1)
    coordinator.add((101, 1), P0)
    coordinator.end((101, 1), commit=True, version=V1)
    assert coordinator.end((101, 0), commit=True, version=V2).code == ErrorCode.PRODUCER_FENCED
    coordinator.write_markers()
    assert coordinator.end((101, 0), commit=True, version=V2).code == ErrorCode.PRODUCER_FENCED


def test_an_end_of_v1_that_is_under_way_is_not_one_of_another_producer(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.end((101, 0), commit=True, version=V1)
    assert coordinator.end((101, 0), commit=True, version=V2).code == ErrorCode.CONCURRENT_TRANSACTIONS
