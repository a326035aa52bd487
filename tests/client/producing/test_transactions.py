from __future__ import annotations

from pathlib import Path

import pytest

from kohort.client.errors import FencedError, TransactionAbortableError
from kohort.client.producing import transactions
from kohort.client.producing.batch import Identity
from kohort.client.producing.coordinator_errors import EXCEPTIONS, REACTIONS, Asked, Reaction, reaction_to
from kohort.client.producing.transactions import TRANSITIONS, Event, ProducerState, State
from kohort.client.producing.verdicts import VERDICTS, Verdict, verdict_of
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError

P = TopicPartition("t", 0)
ERROR = KafkaError(ErrorCode.INVALID_RECORD)


def in_transaction(*, implicit: bool = True) -> ProducerState:
    state = ProducerState("tx")
    state.initialized(Identity(1, 0), implicit=implicit)
    state.begin()
    return state


def test_the_table_in_the_docstring_is_the_table() -> None:
    assert transactions.__doc__ is not None
    lines = [line for line in transactions.__doc__.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    events = [Event[name.upper()] for name in head[1:]]
    said = {}
    for name, *cells in rows:
        for event, cell in zip(events, cells, strict=True):
            if cell:
                said[State[name], event] = State.FATAL_ERROR if cell == "FATAL" else State[cell]
    assert said == {pair: after for pair, after in TRANSITIONS.items() if pair[0] is not State.FATAL_ERROR}


def test_outside_a_transaction_nothing_is_taken() -> None:
    state = ProducerState("tx")
    assert "isn't started" in str(state.refusal)
    state.initialized(Identity(1, 0))
    assert "begin one first" in str(state.refusal)
    state.begin()
    assert state.refusal is None
    with pytest.raises(RuntimeError, match="a transaction is open"):
        state.begin()
    state.commit()
    assert "being committed" in str(state.refusal)


def test_an_abortable_error_says_to_abort_and_an_abort_clears_it() -> None:
    state = in_transaction()
    state.abortable(ERROR)
    assert isinstance(state.refusal, TransactionAbortableError)
    assert "must be aborted" in str(state.refusal) and state.refusal.__cause__ is ERROR
    with pytest.raises(TransactionAbortableError):
        state.commit()
    state.abort()
    state.ended(Identity(1, 1))
    assert state.state is State.READY and state.identity == (1, 1)
    state.begin()
    assert state.refusal is None


def test_a_fenced_producer_says_so_for_ever() -> None:
    state = in_transaction()
    state.fenced(KafkaError(ErrorCode.PRODUCER_FENCED))
    for method in (state.begin, state.commit, state.abort):
        with pytest.raises(FencedError, match="another producer"):
            method()
    state.fatal(ERROR)
    assert isinstance(state.refusal, FencedError)


def test_a_commit_that_was_asked_for_cannot_be_aborted() -> None:
    state = in_transaction()
    state.commit()
    state.decide()
    with pytest.raises(RuntimeError, match="call it again"):
        state.abort()
    state.commit()
    state.decide()
    state.ended()
    assert state.state is State.READY


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    state = ProducerState(None)
    state.initialized(Identity(1, 0))
    assert state.refusal is None and state.may_write(P)
    for method in (state.begin, state.commit, state.abort):
        with pytest.raises(RuntimeError, match="no transactional_id"):
            method()
    state.abortable(ERROR)
    assert state.refusal is None


def test_partitions_are_added_first_unless_that_is_implicit() -> None:
    state = in_transaction(implicit=False)
    state.add(P)
    assert state.pending == {P} and not state.may_write(P) and not state.started
    state.added({P})
    state.add(P)
    assert not state.pending and state.may_write(P) and state.started
    implicit = in_transaction()
    implicit.add(P)
    assert implicit.may_write(P) and implicit.started and not implicit.pending


def test_after_the_last_epoch_a_new_id_is_needed() -> None:
    state = ProducerState(None)
    state.initialized(Identity(1, 2**15 - 2))
    state.bump()
    assert state.identity == (1, 2**15 - 1)
    state.bump()
    assert state.identity is None


@pytest.mark.parametrize(
    ("asked", "code", "reaction"),
    [
        (Asked.INIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Reaction.RETRY),
        (Asked.INIT, ErrorCode.NOT_COORDINATOR, Reaction.FIND),
        (Asked.INIT, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Reaction.FATAL),
        (Asked.ADD_PARTITIONS, ErrorCode.CONCURRENT_TRANSACTIONS, Reaction.RETRY),
        (Asked.ADD_PARTITIONS, ErrorCode.INVALID_TXN_STATE, Reaction.FATAL),
        (Asked.ADD_PARTITIONS, ErrorCode.INVALID_TOPIC_EXCEPTION, Reaction.ABORTABLE),
        (Asked.COMMIT_OFFSETS, ErrorCode.STALE_MEMBER_EPOCH, Reaction.MOVED_ON),
        (Asked.COMMIT_OFFSETS, ErrorCode.REQUEST_TIMED_OUT, Reaction.FIND),
        (Asked.COMMIT, ErrorCode.TRANSACTION_ABORTABLE, Reaction.ABORTABLE),
        (Asked.ABORT, ErrorCode.TRANSACTION_ABORTABLE, Reaction.FATAL),
        (Asked.ABORT, ErrorCode.PRODUCER_FENCED, Reaction.FENCED),
    ],
)
def test_reactions(asked: Asked, code: ErrorCode, reaction: Reaction) -> None:
    assert reaction_to(asked, code) is reaction


def test_the_docs_name_every_error_of_the_tables() -> None:
    page = (Path(__file__).parents[3] / "docs" / "producer.md").read_text()
    codes = {*VERDICTS, *REACTIONS, *(code for _, code in EXCEPTIONS)} - {ErrorCode.NONE}
    assert {code.name for code in codes if code.name not in page} == set()


def test_verdicts_that_are_in_no_table() -> None:
    assert verdict_of(ErrorCode.NOT_ENOUGH_REPLICAS) is Verdict.RETRY
    assert verdict_of(ErrorCode.INVALID_RECORD) is Verdict.REFUSED
    assert verdict_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED) is Verdict.REFUSED
