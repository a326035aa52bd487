"""InitProducerId: ids, epochs, fencing, recovery."""

from __future__ import annotations

import pytest

from kohort.coordinator.transactions import Transaction, TransactionState, init_idempotent_producer
from kohort.coordinator.transactions.transaction import LAST_EPOCH
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transactions.fakes import P0, Coordinator, Given


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def at_epoch(coordinator: Coordinator, epoch: int, state: TransactionState = TransactionState.EMPTY) -> int:
    """Put transactional id "x" to an epoch; its producer id."""
    producer_id = coordinator._new_producer_id()
    partitions = frozenset({P0}) if state is TransactionState.ONGOING else frozenset()
    transaction = Transaction("x", producer_id, epoch, 5000, state, coordinator.now, coordinator.now, partitions)
    key, value = transaction.record()
    coordinator.shard.replay(key, value)
    return producer_id


def test_a_producer_without_transactions_gets_just_an_id(coordinator: Coordinator) -> None:
    assert coordinator.init(None) == (0, 101, 0)
    assert coordinator.init(None) == (0, 102, 0)
    assert coordinator.entries == []


def test_no_id_is_to_be_had() -> None:
    def none_left() -> int:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    response = init_idempotent_producer(none_left)
    assert (response.error_code, response.producer_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)


def test_a_new_transactional_id_begins_at_epoch_0(coordinator: Coordinator) -> None:
    assert coordinator.init() == (0, 101, 0)
    assert coordinator.state() == "Empty"


def test_each_start_takes_the_next_epoch(coordinator: Coordinator) -> None:
    coordinator.init()
    assert coordinator.init() == (0, 101, 1)
    assert coordinator.init("y") == (0, 102, 0)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": ""}, ErrorCode.INVALID_REQUEST),
        ({"held": (5, -1)}, ErrorCode.INVALID_REQUEST),
        ({"held": (-1, 5)}, ErrorCode.INVALID_REQUEST),
        ({"name": None, "held": (-1, 5)}, ErrorCode.INVALID_REQUEST),
        ({"timeout": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout": 10_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"version": 6, "enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"version": 6, "keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_request_that_is_refused(coordinator: Coordinator, fields: dict[str, object], code: ErrorCode) -> None:
    assert coordinator.init(**fields) == (code, -1, -1)  # type: ignore[arg-type]
    assert coordinator.entries == []


def test_the_longest_timeout_is_accepted(coordinator: Coordinator) -> None:
    assert coordinator.init(timeout=10_000).code == 0


def test_a_failed_append_changes_nothing(coordinator: Coordinator) -> None:
    coordinator.fails = ErrorCode.NOT_COORDINATOR
    assert coordinator.init() == (ErrorCode.NOT_COORDINATOR, -1, -1)
    assert coordinator.shard.get("x") is None


# Fencing


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_ends_comes_first(coordinator: Coordinator, commit: bool) -> None:
    _, *producer = coordinator.init()
    coordinator.add(tuple(producer), P0)  # type: ignore[arg-type]
    coordinator.end(tuple(producer), commit)  # type: ignore[arg-type]
    assert coordinator.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    coordinator.write_markers()
    assert coordinator.init() == (0, 101, 2)


def test_an_open_transaction_is_aborted_first(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add((101, 0), P0)
    assert coordinator.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    assert coordinator.state() == "PrepareAbort"
    (markers,) = coordinator.write_markers()
    assert (markers.producer_id, markers.producer_epoch, markers.commit, markers.partitions) == (101, 1, False, (P0,))
    assert coordinator.init() == (0, 101, 2)


def test_who_was_fenced_can_do_nothing(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init()
    assert coordinator.add((101, 0), P0) == [ErrorCode.PRODUCER_FENCED]
    assert coordinator.end((101, 0), commit=True).code == ErrorCode.PRODUCER_FENCED
    assert coordinator.init(held=(101, 0)).code == ErrorCode.PRODUCER_FENCED


def test_a_zombie_does_not_abort_its_successors_transaction(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init()
    coordinator.add((101, 1), P0)
    assert coordinator.init(held=(101, 0)).code == ErrorCode.PRODUCER_FENCED
    assert coordinator.state() == "Ongoing"


def test_old_clients_know_another_word_for_fenced(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init()
    assert coordinator.init(held=(101, 0), version=3).code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert coordinator.add((101, 0), P0, version=1) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert coordinator.add_offsets((101, 0), version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert coordinator.end((101, 0), commit=True, version=1).code == ErrorCode.INVALID_PRODUCER_EPOCH


# Recovery (KIP-360)


def test_a_producer_has_its_own_epoch_bumped(coordinator: Coordinator) -> None:
    coordinator.init()
    assert coordinator.init(held=(101, 0)) == (0, 101, 1)


def test_a_retried_bump_gives_the_same_epoch(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init(held=(101, 0))
    assert coordinator.init(held=(101, 0)) == coordinator.init(held=(101, 0)) == (0, 101, 1)


def test_a_bump_is_not_repeated_for_who_was_fenced_since(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init(held=(101, 0))
    coordinator.init()
    assert coordinator.init(held=(101, 0)).code == ErrorCode.PRODUCER_FENCED


def test_a_bump_is_not_repeated_into_an_open_transaction(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init(held=(101, 0))
    coordinator.add((101, 1), P0)
    assert coordinator.init(held=(101, 0)).code == ErrorCode.PRODUCER_FENCED
    assert coordinator.state() == "Ongoing"


def test_a_bump_that_failed_is_not_remembered(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.fails = ErrorCode.NOT_COORDINATOR
    coordinator.init(held=(101, 0))
    coordinator.fails = None
    coordinator.init()
    assert coordinator.init(held=(101, 0)).code == ErrorCode.PRODUCER_FENCED


def test_another_producer_id_is_fenced(coordinator: Coordinator) -> None:
    coordinator.init()
    assert coordinator.init(held=(99, 0)).code == ErrorCode.PRODUCER_FENCED


def test_a_forgotten_producer_begins_anew(coordinator: Coordinator) -> None:
    assert coordinator.init(held=(7, 3)) == (0, 101, 0)
    assert coordinator.init(held=(7, 3)) == (0, 101, 0)


def test_a_bump_aborts_the_producers_own_transaction(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add((101, 0), P0)
    assert coordinator.init(held=(101, 0)).code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.init(held=(101, 0)).code == ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.write_markers()
    assert coordinator.init(held=(101, 0)) == (0, 101, 1)


def test_who_missed_the_end_of_its_transaction_gets_the_epoch_after_it(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.add((101, 0), P0, version=4)
    coordinator.end((101, 0), commit=True)
    coordinator.write_markers()
    assert coordinator.init(held=(101, 0)) == (0, 101, 1)


# The last epoch


def test_after_the_last_epoch_comes_another_producer_id(coordinator: Coordinator) -> None:
    at_epoch(coordinator, LAST_EPOCH - 1)
    assert coordinator.init() == (0, 101, LAST_EPOCH)
    assert coordinator.init() == (0, 102, 0)


def test_a_bump_of_the_last_epoch_gives_another_producer_id(coordinator: Coordinator) -> None:
    at_epoch(coordinator, LAST_EPOCH)
    assert coordinator.init(held=(101, LAST_EPOCH)) == (0, 102, 0)
    assert coordinator.init(held=(101, LAST_EPOCH)) == (0, 102, 0)


def test_the_producer_with_the_last_epoch_can_still_be_fenced(coordinator: Coordinator) -> None:
    at_epoch(coordinator, LAST_EPOCH, TransactionState.ONGOING)
    assert coordinator.init().code == ErrorCode.CONCURRENT_TRANSACTIONS
    (markers,) = coordinator.write_markers()
    assert markers.producer_epoch == LAST_EPOCH + 1
    assert coordinator.init(held=(101, LAST_EPOCH)) == (0, 102, 0)


def test_nobody_writes_with_the_epoch_that_is_left_for_fencing(coordinator: Coordinator) -> None:
    at_epoch(coordinator, LAST_EPOCH, TransactionState.ONGOING)
    coordinator.init()
    coordinator.write_markers()
    assert coordinator.add((101, LAST_EPOCH + 1), P0, version=4) == [ErrorCode.PRODUCER_FENCED]
    assert coordinator.end((101, LAST_EPOCH + 1), commit=False).code == ErrorCode.PRODUCER_FENCED


def test_given_is_told_in_every_version(coordinator: Coordinator) -> None:
    assert [coordinator.init(version=version) for version in range(7)] == [Given(0, 101, n) for n in range(7)]
