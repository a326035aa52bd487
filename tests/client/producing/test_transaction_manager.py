from __future__ import annotations

from pathlib import Path

import pytest

from kohort.client.errors import FencedError, TransactionAbortableError
from kohort.client.producing import transaction_manager
from kohort.client.producing.batch import Identity
from kohort.client.producing.coordinator_errors import EXCEPTIONS, REACTIONS, Operation, Reaction, reaction_to
from kohort.client.producing.produce_errors import VERDICTS, Verdict, verdict_of
from kohort.client.producing.transaction_manager import TRANSITIONS, Event, State, TransactionManager
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError

P = TopicPartition("t", 0)
ERROR = KafkaError(ErrorCode.INVALID_RECORD)


def in_transaction(*, transaction_v2: bool = True) -> TransactionManager:
    manager = TransactionManager("tx")
    manager.initialized(Identity(1, 0), transaction_v2=transaction_v2)
    manager.begin()
    return manager


def test_the_table_in_the_docstring_is_the_table() -> None:
    assert transaction_manager.__doc__ is not None
    lines = [line for line in transaction_manager.__doc__.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    events = [Event[name.upper()] for name in head[1:]]
    said = {}
    for name, *cells in rows:
        for event, cell in zip(events, cells, strict=True):
            if cell:
                said[State[name], event] = State.FATAL_ERROR if cell == "FATAL" else State[cell]
    assert said == {pair: after for pair, after in TRANSITIONS.items() if pair[0] is not State.FATAL_ERROR}


def test_outside_a_transaction_nothing_is_taken() -> None:
    manager = TransactionManager("tx")
    assert "isn't started" in str(manager.send_error)
    manager.initialized(Identity(1, 0))
    assert "begin one first" in str(manager.send_error)
    manager.begin()
    assert manager.send_error is None
    with pytest.raises(RuntimeError, match="a transaction is open"):
        manager.begin()
    manager.commit()
    assert "being committed" in str(manager.send_error)


def test_an_abortable_error_says_to_abort_and_an_abort_clears_it() -> None:
    manager = in_transaction()
    manager.abortable(ERROR)
    assert isinstance(manager.send_error, TransactionAbortableError)
    assert "must be aborted" in str(manager.send_error) and manager.send_error.__cause__ is ERROR
    with pytest.raises(TransactionAbortableError):
        manager.commit()
    manager.abort()
    manager.ended(Identity(1, 1))
    assert manager.state is State.READY and manager.identity == (1, 1)
    manager.begin()
    assert manager.send_error is None


def test_a_fenced_producer_says_so_for_ever() -> None:
    manager = in_transaction()
    manager.fenced(KafkaError(ErrorCode.PRODUCER_FENCED))
    for method in (manager.begin, manager.commit, manager.abort):
        with pytest.raises(FencedError, match="another producer"):
            method()
    manager.fatal(ERROR)
    assert isinstance(manager.send_error, FencedError)


def test_a_commit_that_was_asked_for_cannot_be_aborted() -> None:
    manager = in_transaction()
    manager.commit()
    manager.end_txn_sent()
    with pytest.raises(RuntimeError, match="call it again"):
        manager.abort()
    manager.commit()
    manager.end_txn_sent()
    manager.ended()
    assert manager.state is State.READY


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    manager = TransactionManager(None)
    manager.initialized(Identity(1, 0))
    assert manager.send_error is None and manager.may_write(P)
    for method in (manager.begin, manager.commit, manager.abort):
        with pytest.raises(RuntimeError, match="no transactional_id"):
            method()
    manager.abortable(ERROR)
    assert manager.send_error is None


def test_partitions_are_added_first_unless_that_is_has_transaction_v2() -> None:
    manager = in_transaction(transaction_v2=False)
    manager.add(P)
    assert manager.pending == {P} and not manager.may_write(P) and not manager.started
    manager.added({P})
    manager.add(P)
    assert not manager.pending and manager.may_write(P) and manager.started
    transaction_v2 = in_transaction()
    transaction_v2.add(P)
    assert transaction_v2.may_write(P) and transaction_v2.started and not transaction_v2.pending


def test_after_the_last_epoch_a_new_id_is_needed() -> None:
    manager = TransactionManager(None)
    manager.initialized(Identity(1, 2**15 - 2))
    manager.bump_epoch()
    assert manager.identity == (1, 2**15 - 1)
    manager.bump_epoch()
    assert manager.identity is None


@pytest.mark.parametrize(
    ("operation", "code", "reaction"),
    [
        (Operation.INIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Reaction.RETRY),
        (Operation.INIT, ErrorCode.NOT_COORDINATOR, Reaction.FIND_COORDINATOR),
        (Operation.INIT, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Reaction.FATAL),
        (Operation.ADD_PARTITIONS, ErrorCode.CONCURRENT_TRANSACTIONS, Reaction.RETRY),
        (Operation.ADD_PARTITIONS, ErrorCode.INVALID_TXN_STATE, Reaction.FATAL),
        (Operation.ADD_PARTITIONS, ErrorCode.INVALID_TOPIC_EXCEPTION, Reaction.ABORTABLE),
        (Operation.COMMIT_OFFSETS, ErrorCode.STALE_MEMBER_EPOCH, Reaction.REBALANCED),
        (Operation.COMMIT_OFFSETS, ErrorCode.REQUEST_TIMED_OUT, Reaction.FIND_COORDINATOR),
        (Operation.COMMIT, ErrorCode.TRANSACTION_ABORTABLE, Reaction.ABORTABLE),
        (Operation.ABORT, ErrorCode.TRANSACTION_ABORTABLE, Reaction.FATAL),
        (Operation.ABORT, ErrorCode.PRODUCER_FENCED, Reaction.FENCED),
    ],
)
def test_reactions(operation: Operation, code: ErrorCode, reaction: Reaction) -> None:
    assert reaction_to(operation, code) is reaction


def test_the_docs_name_every_error_of_the_tables() -> None:
    page = (Path(__file__).parents[3] / "docs" / "producer.md").read_text()
    codes = {*VERDICTS, *REACTIONS, *(code for _, code in EXCEPTIONS)} - {ErrorCode.NONE}
    assert {code.name for code in codes if code.name not in page} == set()


def test_verdicts_that_are_in_no_table() -> None:
    assert verdict_of(ErrorCode.NOT_ENOUGH_REPLICAS) is Verdict.RETRY
    assert verdict_of(ErrorCode.INVALID_RECORD) is Verdict.REFUSED
    assert verdict_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED) is Verdict.REFUSED
