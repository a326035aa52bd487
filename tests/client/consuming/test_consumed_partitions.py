"""The consumed partition info: what is counted adds up, whatever happens in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kohort.client.consuming.completed_fetch import CompletedFetch, Piece
from kohort.client.consuming.consumed_partitions import EARLIEST, ConsumedPartition, ConsumedPartitions, FetchState
from kohort.client.errors import NoOffsetError
from kohort.client.types import OffsetAndMetadata, TopicPartition

NAMES = [TopicPartition("t", number) for number in range(3)]
NAME = st.sampled_from(NAMES)


def answer(offset: int, sizes: list[int]) -> CompletedFetch:
    pieces = [Piece(b"", (), offset + index, offset + index + 1, 0, size) for index, size in enumerate(sizes)]
    return CompletedFetch(pieces, offset + len(sizes), None, cut_off=False)


class Books(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.partitions = ConsumedPartitions(100, lambda: EARLIEST)

    def pick(self, name: TopicPartition) -> ConsumedPartition:
        if name not in self.partitions.by_name:
            self.partitions.add([name])
            self.partitions.seek(self.partitions[name], 0)
        return self.partitions[name]

    @rule(name=NAME, sizes=st.lists(st.integers(1, 90), max_size=3))
    def fetch(self, name: TopicPartition, sizes: list[int]) -> None:
        partition = self.pick(name)
        if partition.fetchable and not partition.full:
            self.partitions.add_fetched(partition, answer(partition.fetched, sizes))

    @rule(done=st.booleans())
    def give(self, done: bool) -> None:
        partition = self.partitions.next_ready()
        if partition is None:
            return
        assert not partition.paused
        if partition.queue:
            piece = partition.queue[0]
            assert piece.offset == partition.position  # nothing is left out, nothing comes twice
            self.partitions.open(partition)
            if done:
                partition.position = partition.consumed = piece.next_offset
                self.partitions.piece_done(partition, piece)
        else:
            assert partition.error is not None

    @rule(name=NAME, offset=st.integers(0, 50))
    def seek(self, name: TopicPartition, offset: int) -> None:
        self.partitions.seek(self.pick(name), offset)

    @rule(name=NAME)
    def stop(self, name: TopicPartition) -> None:
        partition = self.pick(name)
        self.partitions.stop_at(partition, partition.position, ValueError("bad"))

    @rule(name=NAME)
    def pause(self, name: TopicPartition) -> None:
        self.partitions.pause(self.pick(name))

    @rule(name=NAME)
    def resume(self, name: TopicPartition) -> None:
        self.partitions.resume(self.pick(name))

    @rule()
    def forget_paused(self) -> None:
        self.partitions.forget_paused()

    @rule(name=NAME)
    def drop(self, name: TopicPartition) -> None:
        self.partitions.remove([name])

    @invariant()
    def bytes_add_up(self) -> None:
        for partition in self.partitions:
            opened = partition.opened.size if partition.opened is not None else 0
            assert partition.queued == sum(piece.size for piece in partition.queue) - opened
            assert partition.opened is None or partition.opened is partition.queue[0]
            assert partition.fetched == (partition.queue[-1].next_offset if partition.queue else partition.position)
        assert self.partitions.queued == sum(partition.queued for partition in self.partitions)

    @invariant()
    def news_are_where_there_is_something(self) -> None:
        waiting = [each for each in self.partitions if not each.paused and (each.queue or each.error is not None)]
        assert (self.partitions.next_ready() is not None) == bool(waiting)


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def begun(offset: int = 5) -> tuple[ConsumedPartitions, ConsumedPartition]:
    partitions = ConsumedPartitions(100, lambda: EARLIEST)
    (partition,) = partitions.add(NAMES[:1])
    partitions.seek(partition, offset)
    return partitions, partition


def test_what_is_to_be_committed() -> None:
    partitions, partition = begun()
    partition.position, partition.consumed, partition.position_epoch = 8, 7, 2
    assert partitions.to_commit(given=True) == {NAMES[0]: OffsetAndMetadata(8, 2)}
    assert partitions.to_commit(given=False) == {NAMES[0]: OffsetAndMetadata(7, 2)}
    assert partitions.to_commit(NAMES[1:], given=True) == {}
    partitions.committed([(NAMES[0], OffsetAndMetadata(8))])
    assert partitions.to_commit(given=True) == {}
    assert partitions.to_commit(given=False) == {}  # the user has committed the record in hands: it stays so
    partitions.seek(partition, 3)
    assert partitions.to_commit(given=False) == {NAMES[0]: OffsetAndMetadata(3)}


def test_partitions_take_turns() -> None:
    partitions = ConsumedPartitions(100, lambda: EARLIEST)
    for partition in partitions.add(NAMES):
        partitions.seek(partition, 0)
        partitions.add_fetched(partition, answer(0, [10, 10]))
    order = []
    while (ready := partitions.next_ready()) is not None:
        order.append(ready.topic_partition.partition)
        partitions.piece_done(ready, ready.queue[0])
    assert order == [0, 1, 2, 0, 1, 2]


def test_a_fetch_size_grows_until_a_batch_fits() -> None:
    partitions, partition = begun()
    partitions.add_fetched(partition, CompletedFetch([], 5, None, cut_off=True))
    assert partition.fetch_size == 200


def test_a_reset_waits_for_what_was_fetched_before() -> None:
    partitions, partition = begun()
    partitions.add_fetched(partition, answer(5, [10]))
    partitions.reset_by_policy(partition, "gone")
    assert partition.state is FetchState.AWAIT_RESET
    assert partitions.in_state(FetchState.AWAIT_RESET, 0) == []
    partitions.piece_done(partition, partition.queue[0])
    assert partitions.in_state(FetchState.AWAIT_RESET, 0) == [partition]
    partition.retry_at = 10
    assert partitions.in_state(FetchState.AWAIT_RESET, 9) == []


def test_without_a_policy_the_user_is_told_of_a_truncated_log() -> None:
    partitions = ConsumedPartitions(100, lambda: None)
    (partition,) = partitions.add(NAMES[:1])
    partitions.seek(partition, 9)
    partitions.truncated(partition, 4)
    assert isinstance(partition.error, NoOffsetError)
    assert partition.error.partitions == {NAMES[0]: 9}
    assert partitions.next_ready() is partition


def test_partitions_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="t-0 isn't assigned to this consumer, but nothing"):
        ConsumedPartitions(100)[NAMES[0]]
