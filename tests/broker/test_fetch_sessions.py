from __future__ import annotations

import itertools

import pytest

from kohort.broker import fetch_sessions
from kohort.broker.fetch_sessions import FetchSession, FetchSessions
from kohort.log.slices import in_one_go
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.schema import NO_UUID


def sessions(slots: int = 2) -> FetchSessions:
    ids = itertools.count(1)
    return FetchSessions(slots, lambda: next(ids), idle_ms=100)


def request(session: tuple[int, int], *partitions: int, forget: tuple[int, ...] = (), offset: int = 0) -> FetchRequest:
    return FetchRequest(
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchRequest.Topic(
                topic="t",
                partitions=[FetchRequest.Topic.Partition(partition=index, fetch_offset=offset) for index in partitions],
            )
        ],
        forgotten_topics_data=[FetchRequest.ForgottenTopicsData(topic="t", partitions=forget)],
    )


def update(cache: FetchSessions, asked: FetchRequest, now: int, *, by_id: bool = False) -> FetchSession:
    return in_one_go(cache.update(asked, now, by_id=by_id))


def indexes(session: FetchSession) -> list[int]:
    return [partition.index for partition in session.partitions.values()]


def test_a_full_fetch_begins_a_session_that_the_next_continues() -> None:
    cache = sessions()
    first = update(cache, request((0, 0), 0, 1), 0)
    assert (first.id, first.epoch, first.incremental) == (1, 1, False)
    second = update(cache, request((1, 1), 2, forget=(0,)), 1)
    assert second is first
    assert second.incremental
    assert indexes(second) == [1, 2]
    assert second.epoch == 2


def test_a_partition_keeps_its_place_and_takes_the_new_offset() -> None:
    cache = sessions()
    update(cache, request((0, 0), 0, 1), 0)
    session = update(cache, request((1, 1), 0, offset=7), 1)
    assert [partition.offset for partition in session.partitions.values()] == [7, 0]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_session_goes_on_with_names_or_with_ids_as_it_began(by_id: bool) -> None:
    cache = sessions()
    update(cache, request((0, 0), 0), 0, by_id=by_id)
    with pytest.raises(KafkaError) as caught:
        update(cache, request((1, 1), 0), 1, by_id=not by_id)
    assert caught.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert update(cache, request((1, 1), 0), 1, by_id=by_id).id == 1


def test_what_was_served_goes_to_the_end() -> None:
    session = update(sessions(), request((0, 0), 0, 1, 2), 0)
    session.move_to_end(("t", NO_UUID, 0))
    assert indexes(session) == [1, 2, 0]


def test_without_a_session_nothing_is_remembered() -> None:
    cache = sessions()
    assert update(cache, request((0, -1), 0), 0).id == 0
    assert len(cache) == 0


def test_the_final_epoch_ends_a_session() -> None:
    cache = sessions()
    update(cache, request((0, 0), 0), 0)
    assert indexes(update(cache, request((1, -1), 5), 0)) == [5]
    assert len(cache) == 0


@pytest.mark.parametrize(
    ("session", "code"),
    [((9, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND), ((1, 2), ErrorCode.INVALID_FETCH_SESSION_EPOCH)],
)
def test_a_session_that_is_not_as_the_client_thinks(session: tuple[int, int], code: ErrorCode) -> None:
    cache = sessions()
    update(cache, request((0, 0), 0), 0)
    with pytest.raises(KafkaError) as caught:
        update(cache, request(session, 0), 0)
    assert caught.value.code is code


def test_only_a_session_that_idles_makes_room() -> None:
    cache = sessions(slots=1)
    update(cache, request((0, 0), 0), 0)
    assert update(cache, request((0, 0), 0), 50).id == 0
    assert update(cache, request((0, 0), 0), 100).id == 2
    assert len(cache) == 1


def full(count: int, first: int = 0) -> FetchRequest:
    partitions = [FetchRequest.Topic.Partition(partition=first + number) for number in range(count)]
    return FetchRequest(session_epoch=0, topics=[FetchRequest.Topic(topic="t", partitions=partitions)])


def test_sessions_left_behind_go_when_there_are_too_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 10)
    cache = sessions(slots=5)
    first, second = (update(cache, full(4), now=number) for number in range(2))
    more = FetchRequest(session_id=first.id, session_epoch=1, topics=full(2, first=4).topics)
    assert update(cache, more, now=2) is first
    third = update(cache, full(3), now=3)
    assert (len(cache), cache.partitions()) == (2, 9)
    for session, known in ((first, True), (second, False), (third, True)):
        asked = FetchRequest(session_id=session.id, session_epoch=session.epoch)
        if known:
            assert update(cache, asked, now=4) is session
        else:
            with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
                update(cache, asked, now=4)


def test_a_session_that_is_too_large_by_itself_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 10)
    cache = sessions(slots=5)
    large = update(cache, full(11), now=1)
    assert len(large.partitions) == 11
    assert (large.id, len(cache), cache.partitions()) == (0, 0, 0)
    small = update(cache, full(9), now=1)
    update(cache, FetchRequest(session_id=small.id, session_epoch=1, topics=full(3, first=9).topics), now=2)
    assert (len(cache), cache.partitions()) == (0, 0)


def test_very_many_partitions_are_taken_in_slices() -> None:
    cache = sessions()
    count = 10 * fetch_sessions.PARTITIONS_A_SLICE
    assert sum(1 for _ in cache.update(request((0, 0), *range(count)), 0)) >= 9
    assert sum(1 for _ in cache.update(request((1, 1), forget=tuple(range(count))), 1)) >= 9
    assert cache.partitions() == 0


def test_a_session_that_has_to_go_while_it_is_updated_is_not_counted() -> None:
    cache = sessions()
    first = update(cache, request((0, 0), 0), 0)
    updating = cache.update(request((1, 1), *range(2 * fetch_sessions.PARTITIONS_A_SLICE)), 1)
    next(updating)
    cache.forget(first)
    assert in_one_go(updating) is first
    assert (len(cache), cache.partitions()) == (0, 0)
