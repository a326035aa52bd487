"""Whatever goes wrong: nothing acknowledged is lost, nothing is there twice, and order holds."""

from __future__ import annotations

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError
from kohort.client.types import RecordMetadata
from kohort.protocol.errors import ErrorCode

from .model_broker import ModelLeader, ModelProducer

REFUSALS = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_RECORD]
AFTER_ALL = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]

actions = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 4)),
    st.tuples(st.just("send and drain"), st.integers(1, 4)),
    st.tuples(st.just("send and drain"), st.integers(1, 4)),
    st.tuples(st.just("send and drain"), st.integers(1, 4)),
    st.tuples(st.just("drain"), st.just(0)),
    st.tuples(st.just("write"), st.just(0)),
    st.tuples(st.just("write"), st.just(0)),
    st.tuples(st.just("refuse"), st.integers(0, len(REFUSALS) - 1)),
    st.tuples(st.just("write and fail"), st.integers(0, len(AFTER_ALL) - 1)),
    st.tuples(st.just("too large"), st.just(0)),
    st.tuples(st.just("lose"), st.integers(0, 5)),
    st.tuples(st.just("read late"), st.integers(0, 3)),
    st.tuples(st.just("another epoch"), st.just(0)),
    st.tuples(st.just("wait"), st.sampled_from([5, 10, 10, 600, 1100])),
)


def play(steps: list[tuple[str, int]], idempotent: bool = True) -> tuple[ModelProducer, ModelLeader]:
    producer, leader = ModelProducer(enable_idempotence=idempotent), ModelLeader()
    for action, number in steps:
        match action:
            case "send":
                producer.send(number)
            case "send and drain":
                producer.send(number)
                producer.drain()
            case "drain":
                producer.drain()
            case "wait":
                producer.now += number
                producer.completer.expire(producer.now, lambda batch: None)
            case "lose":  # after the broker has read some of what was sent
                lost = list(producer.wire)
                producer.wire.clear()
                for _, data in lost[:number]:
                    leader.append(data)
                producer.unread.append(deque(data for _, data in lost[number:]))
                for batch, _ in lost:
                    producer.completer.handle_no_response(batch, ConnectionLostError("lost"), producer.now)
            case "read late":
                read_late(producer, leader, number)
            case "another epoch":  # since another partition needs one
                producer.state.bump_epoch()
            case _ if producer.wire:
                batch, data = producer.wire.popleft()
                if action == "write":
                    producer.answer(batch, *leader.append(data))
                elif action == "write and fail":
                    code, offset = leader.append(data)
                    producer.answer(batch, AFTER_ALL[number] if code is ErrorCode.NONE else code, offset)
                elif action == "refuse":
                    producer.answer(batch, REFUSALS[number])
                elif batch.count > 1 and not batch.doubtful:
                    leader.refused[data] = ErrorCode.MESSAGE_TOO_LARGE
                    producer.answer(batch, ErrorCode.MESSAGE_TOO_LARGE)
                else:
                    producer.answer(batch, *leader.append(data))
    return producer, leader


def read_late(producer: ModelProducer, leader: ModelLeader, number: int) -> None:
    """The broker reads a request of a connection that its client has given up."""
    unread = [each for each in producer.unread if each]
    if unread:
        leader.append(unread[number % len(unread)].popleft())


def finish(producer: ModelProducer, leader: ModelLeader) -> None:
    """From here on nothing goes wrong, but for time."""
    for _ in range(1000):
        while producer.wire:
            batch, data = producer.wire.popleft()
            producer.answer(batch, *leader.append(data))
        if not producer.drain() and producer.queue.idle:
            return
        producer.now += 10
    raise AssertionError(f"it hangs: {producer.queue.retries} {producer.queue.waiting} {producer.queue.in_flight}")


@settings(max_examples=600, deadline=None)
@given(st.lists(actions, max_size=60))
def test_exactly_once_whatever_happens(steps: list[tuple[str, int]]) -> None:
    producer, leader = play(steps)
    finish(producer, leader)
    while any(producer.unread):
        read_late(producer, leader, 0)
    log = leader.log
    assert sorted(set(log)) == sorted(log), "a record is there twice"
    assert log == sorted(log), "records are out of order"
    for number, delivery in enumerate(producer.deliveries):
        value = b"%06d" % number
        error = delivery.exception()
        if error is None:
            metadata = delivery.result()
            assert isinstance(metadata, RecordMetadata)
            assert log[metadata.offset] == value, "an acknowledged record isn't where it was said to be"
        elif "may be in the log" not in str(error):
            assert value not in log, f"failed ({error}), but there"
    assert producer.accumulator.buffered == 0


def test_nothing_follows_a_producers_first_batch_before_it_is_written() -> None:
    """A broker lets one that it doesn't know yet begin with any sequence: were the first refused, the second counts."""
    producer, leader = play([("send", 2), ("drain", 0), ("send", 2), ("drain", 0), ("refuse", 0), ("write", 0)])
    finish(producer, leader)
    assert leader.log == [b"000000", b"000001", b"000002", b"000003"]
    assert [delivery.result().offset for delivery in producer.deliveries] == [0, 1, 2, 3]
    assert producer.state.identity == (7, 0)


def test_brokers_forget_those_who_are_silent_for_long() -> None:
    producer, leader = play([("send and drain", 1), ("write", 0), ("wait", 24 * 3_600_000)])
    leader.epoch = -1
    leader.recent.clear()
    for count in range(2):
        producer.send(1)
        assert producer.drain() == 1 - count
    finish(producer, leader)
    assert leader.log == [b"000000", b"000001", b"000002"]


@settings(max_examples=300, deadline=None)
@given(st.lists(actions, max_size=60))
def test_it_always_ends_without_idempotence(steps: list[tuple[str, int]]) -> None:
    steps = [step for step in steps if step[0] not in ("write", "write and fail")]
    producer, _ = play(steps, idempotent=False)
    while True:
        while producer.wire:
            batch, _ = producer.wire.popleft()
            producer.answer(batch, ErrorCode.NONE, 5)
        if not producer.drain() and producer.queue.idle:
            break
        producer.now += 10
    assert all(delivery.done() for delivery in producer.deliveries)


def test_a_lost_connection_is_found_out_about_by_sending_again() -> None:
    producer, leader = play([("send", 2), ("drain", 0), ("send", 2), ("drain", 0), ("lose", 1)])
    assert leader.log == [b"000000", b"000001"]
    finish(producer, leader)
    assert leader.log == [b"000000", b"000001", b"000002", b"000003"]
    assert [delivery.result().offset for delivery in producer.deliveries] == [0, 1, 2, 3]
    assert producer.state.identity == (7, 0)


def test_a_refused_batch_raises_the_epoch_and_the_next_ones_go_on() -> None:
    steps = [("send", 1), ("drain", 0), ("send", 1), ("drain", 0), ("refuse", 2), ("write", 0)]
    producer, leader = play(steps)
    finish(producer, leader)
    assert leader.log == [b"000001"]
    assert producer.state.identity == (7, 1)


def test_what_expired_unanswered_may_be_in_the_log_and_costs_an_epoch() -> None:
    producer, leader = play([("send", 1), ("drain", 0), ("lose", 1), ("wait", 600), ("wait", 600), ("send", 1)])
    finish(producer, leader)
    error = producer.deliveries[0].exception()
    assert isinstance(error, RequestTimeoutError)
    assert "may be in the log" in str(error) and "lost" in str(error)
    assert leader.log == [b"000000", b"000001"]
    assert producer.state.identity == (7, 1)


def test_what_the_broker_may_still_read_is_not_sent_under_another_epoch() -> None:
    steps = [("send and drain", 1), ("write", 0), ("send and drain", 1), ("wait", 600), ("send and drain", 1)]
    producer, leader = play([*steps, ("lose", 0), ("wait", 600), ("send", 1), ("drain", 0), ("write", 0)])
    assert isinstance(producer.deliveries[1].exception(), RequestTimeoutError)
    finish(producer, leader)
    error = producer.deliveries[2].exception()
    assert isinstance(error, ClientError) and "twice (they may be in the log)" in str(error)
    read_late(producer, leader, 0)
    assert leader.log == [b"000000", b"000003"]
    assert producer.state.identity == (7, 1)


def test_what_follows_a_refused_batch_that_may_be_in_the_log_is_found_out_about() -> None:
    steps = [("send", 1), ("drain", 0), ("write", 0), *[("send", 1), ("drain", 0)] * 2, ("lose", 2), ("wait", 10)]
    producer, leader = play([*steps, ("drain", 0), ("refuse", 2)])
    assert "may be in the log" in str(producer.deliveries[1].exception())
    finish(producer, leader)
    assert leader.log == [b"000000", b"000001", b"000002"]
    assert producer.deliveries[2].result().offset == 2


def test_what_is_too_large_goes_in_halves_with_the_same_sequences() -> None:
    producer, leader = play([("send", 4), ("drain", 0), ("too large", 0), ("drain", 0), ("drain", 0), ("too large", 0)])
    finish(producer, leader)
    assert leader.log == [b"%06d" % number for number in range(4)]
    assert [delivery.result().offset for delivery in producer.deliveries] == [0, 1, 2, 3]
    assert producer.state.identity == (7, 0)


def test_no_more_than_five_are_unanswered() -> None:
    producer, _ = play([("send", 1), ("drain", 0), ("write", 0)] + [("send", 1), ("drain", 0)] * 9)
    assert len(producer.wire) == 5
    assert len(producer.queue.waiting) == 3 and producer.queue.open is not None
