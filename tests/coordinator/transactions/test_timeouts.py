"""What happens to transactions that take too long, and to ids that nobody uses."""

from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from tests.coordinator.transactions.fakes import P0, P1, Coordinator

V1, V2 = 4, 5
WEEK = 7 * 24 * 60 * 60 * 1000


@pytest.fixture
def coordinator() -> Coordinator:
    """With a producer that has id 101 and epoch 0."""
    coordinator = Coordinator()
    coordinator.init()
    return coordinator


# Timeouts


def test_a_transaction_may_take_its_time(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.now += 5000
    assert not coordinator.run(coordinator.shard.abort_timed_out(coordinator.now))


@pytest.mark.parametrize("version", [V1, V2])
def test_a_transaction_that_takes_longer_is_aborted(coordinator: Coordinator, version: int) -> None:
    coordinator.add((101, 0), P0)
    coordinator.now += 5001
    coordinator.run(coordinator.shard.abort_timed_out(coordinator.now))
    (markers,) = coordinator.write_markers()
    assert (markers.producer_epoch, markers.commit, markers.partitions) == (1, False, (P0,))
    assert coordinator.add((101, 0), P1) == [ErrorCode.PRODUCER_FENCED]
    late = ErrorCode.PRODUCER_FENCED if version == V1 else ErrorCode.INVALID_TXN_STATE
    assert coordinator.end((101, 0), commit=True, version=version).code == late


def test_the_producer_of_an_aborted_transaction_recovers(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.now += 5001
    coordinator.run(coordinator.shard.abort_timed_out(coordinator.now))
    assert coordinator.init(held=(101, 0)).code == ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.write_markers()
    assert coordinator.init(held=(101, 0)) == (0, 101, 1)


def test_markers_that_lack_are_asked_for_again(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0, P1)
    coordinator.end((101, 0), commit=True)
    coordinator.due.clear()
    coordinator.run(coordinator.shard.markers_written("x", [P0], coordinator.now))
    coordinator.run(coordinator.shard.abort_timed_out(coordinator.now + 9_999))
    assert not coordinator.due
    coordinator.run(coordinator.shard.abort_timed_out(coordinator.now + 10_000))
    assert [again.partitions for again in coordinator.due] == [(P1,)]
    coordinator.write_markers()
    assert coordinator.state() == "CompleteCommit"


def test_a_completion_that_failed_is_repeated(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.end((101, 0), commit=True)
    coordinator.fails = ErrorCode.NOT_COORDINATOR
    coordinator.write_markers()
    assert coordinator.state() == "PrepareCommit"
    coordinator.fails = None
    coordinator.run(coordinator.shard.abort_timed_out(coordinator.now + 10_000))
    coordinator.write_markers()
    assert coordinator.state() == "CompleteCommit"


# Expiry


@pytest.mark.parametrize("version", [None, V1, V2])
def test_an_id_that_is_not_used_is_forgotten(coordinator: Coordinator, version: int | None) -> None:
    if version is not None:
        coordinator.add((101, 0), P0)
        coordinator.end((101, 0), commit=True, version=version)
        coordinator.write_markers()
    assert not coordinator.run(coordinator.shard.expire(coordinator.now + WEEK - 1))
    coordinator.run(coordinator.shard.expire(coordinator.now + WEEK))
    assert coordinator.shard.describe("x").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert coordinator.init() == (0, 102, 0)


def test_an_open_transaction_is_not_forgotten(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    assert not coordinator.run(coordinator.shard.expire(coordinator.now + 2 * WEEK))


def test_an_ending_transaction_is_not_forgotten(coordinator: Coordinator) -> None:
    coordinator.add((101, 0), P0)
    coordinator.end((101, 0), commit=True)
    assert not coordinator.run(coordinator.shard.expire(coordinator.now + 2 * WEEK))


# Many at once


def test_however_many_transactions_are_slow_a_batch_of_aborts_is_small(coordinator: Coordinator) -> None:
    names = [f"{number:x<30000}" for number in range(20)]
    for number, name in enumerate(names):
        coordinator.init(name)
        coordinator.add((102 + number, 0), P0, name=name)
    coordinator.now += 5001
    step = coordinator.shard.abort_timed_out(coordinator.now)
    assert 1 < len(step.records) == len(step.markers) < 20
    while coordinator.run(coordinator.shard.abort_timed_out(coordinator.now)):
        coordinator.write_markers()
    assert {coordinator.state(name) for name in names} == {"CompleteAbort"}


def test_however_many_ids_are_old_a_batch_of_them_is_small(coordinator: Coordinator) -> None:
    for number in range(19):
        coordinator.init(f"{number:x<30000}")
    later = coordinator.now + WEEK
    assert 1 < len(coordinator.shard.expire(later).records) < 20
    while coordinator.run(coordinator.shard.expire(later)):
        pass
    assert not coordinator.shard.transactions()
