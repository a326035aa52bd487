"""When a member asks for news, by stories of what happens to it."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.client.streams.events import StatusesChanged
from kohort.client.streams.transitions import State
from kohort.protocol.errors import ErrorCode
from kohort.protocol.heartbeat_wishes import Grant, Wishes, wishes_of
from kohort.protocol.messages.streams_group_heartbeat import Status as WireStatus
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tests.client.streams.test_membership_manager import ACTIVE, INTERVAL, A, B, Scripted

HOLDS = {"unknown_tags": Grant(1_000, INTERVAL).tags()}


def member(**settings: Any) -> Scripted:
    return Scripted(**{"disconnect_timeout_ms": 1_000, "held_heartbeats": True} | settings)


def joined(**settings: Any) -> Scripted:
    """A member in a group whose coordinator holds heartbeats."""
    scripted = member(**settings)
    scripted.member.begin(scripted.now)
    scripted.beat(tasks={A: ACTIVE}, **HOLDS)
    scripted.events()
    scripted.beat(**HOLDS)
    return scripted


def ask(scripted: Scripted) -> StreamsGroupHeartbeatRequest:
    """Asks for news, which is due now, or when it is."""
    due = scripted.member.news_due_at
    assert due is not None
    scripted.now = max(scripted.now, due)
    request = scripted.member.news_request()
    assert scripted.member.news_due_at is None, "one at a time"
    return request


def answer(scripted: Scripted, *, news: bool, error: ErrorCode = ErrorCode.NONE, granted: bool = True) -> None:
    response = StreamsGroupHeartbeatResponse(member_id="m", member_epoch=3, error_code=error)
    if granted:
        response.unknown_tags = Grant(1_000, INTERVAL, news).tags()
    scripted.member.on_news(response, scripted.now)


@pytest.mark.parametrize(
    ("settings", "wishes"),
    [
        ({}, None),
        ({"disconnect_timeout_ms": 1_000}, Wishes(1_000)),
        ({"held_heartbeats": True}, Wishes(-1)),
        ({"disconnect_timeout_ms": 0, "held_heartbeats": True}, Wishes(0)),
    ],
)
def test_what_a_member_wants_it_says_in_each_heartbeat(settings: dict[str, Any], wishes: Wishes | None) -> None:
    scripted = Scripted(**settings)
    scripted.member.begin(scripted.now)
    for request in (scripted.beat(), scripted.beat()):
        assert wishes_of(request.unknown_tags) == wishes


def test_a_heartbeat_that_asks_for_news_says_what_the_member_knows_and_nothing_else() -> None:
    scripted = joined()
    scripted.now += INTERVAL
    scripted.beat(status=[WireStatus(status_code=2, status_detail="of a topic")], **HOLDS)
    assert [type(event) for event in scripted.events()] == [StatusesChanged]
    request = ask(scripted)
    assert wishes_of(request.unknown_tags) == Wishes(1_000, INTERVAL, (2,))
    assert request == StreamsGroupHeartbeatRequest(
        group_id="app", member_id="m", member_epoch=3, endpoint_information_epoch=7, unknown_tags=request.unknown_tags
    )
    assert request.active_tasks is request.topology is request.task_offsets is None


@pytest.mark.parametrize("granted", [{}, {"unknown_tags": Grant(1_000, 0).tags()}])
def test_a_coordinator_that_grants_nothing_is_asked_for_no_news(granted: dict[str, Any]) -> None:
    scripted = member().joined(tasks={A: ACTIVE})
    scripted.now += INTERVAL
    scripted.beat(**granted)
    assert scripted.member.news_due_at is None


def test_who_wants_none_asks_for_none() -> None:
    assert joined(held_heartbeats=False).member.news_due_at is None


def test_news_is_fetched_at_once_and_then_there_may_be_more() -> None:
    scripted = joined()
    ask(scripted)
    assert scripted.wait > 0
    answer(scripted, news=True)
    assert scripted.wait == 0
    assert scripted.member.news_due_at is None
    scripted.beat(epoch=4, tasks={A: ACTIVE, B: ACTIVE}, **HOLDS)
    assert scripted.member.news_due_at is not None and scripted.member.news_due_at <= scripted.now


def test_without_news_it_asks_again_and_ordinary_heartbeats_go_on() -> None:
    scripted = joined()
    for _ in range(3):
        ask(scripted)
        answer(scripted, news=False)
        assert scripted.wait == INTERVAL
    assert ask(scripted)


def test_a_member_with_something_to_say_does_not_wait_for_the_held_one() -> None:
    scripted = joined()
    ask(scripted)
    answer(scripted, news=True)
    scripted.beat(epoch=4, tasks={}, **HOLDS)
    ask(scripted)
    scripted.events()
    scripted.member.closed([A], scripted.now)
    assert scripted.wait == 0
    request = scripted.sent()
    assert request.active_tasks == []


def test_news_that_is_none_is_asked_for_ever_more_rarely() -> None:
    scripted = joined()
    pauses = []
    for _ in range(9):
        ask(scripted)
        answer(scripted, news=True)
        scripted.beat(**HOLDS)
        due = scripted.member.news_due_at
        assert due is not None
        pauses.append(due - scripted.now)
    assert pauses == [50, 100, 200, 400, 800, 1_600, 3_200, INTERVAL, INTERVAL]
    ask(scripted)
    answer(scripted, news=True)
    scripted.beat(epoch=4, **HOLDS)
    assert scripted.member.news_due_at is not None and scripted.member.news_due_at <= scripted.now


@pytest.mark.parametrize(
    "answered", [{"error": ErrorCode.NOT_COORDINATOR, "granted": False}, {"granted": False}], ids=["error", "no grant"]
)
def test_an_answer_of_another_kind_is_left_to_the_next_heartbeat(answered: dict[str, Any]) -> None:
    scripted = joined()
    ask(scripted)
    answer(scripted, news=False, **answered)
    assert scripted.wait == 0
    scripted.answer(error=ErrorCode.NOT_COORDINATOR) if scripted.sent() else None
    assert scripted.member.news_due_at is None
    scripted.beat(**HOLDS, tasks={A: ACTIVE})
    assert scripted.member.news_due_at is not None


def test_when_the_connection_breaks_the_member_says_at_once_that_it_lives() -> None:
    scripted = joined()
    ask(scripted)
    scripted.now += 10
    scripted.member.on_news_failure(scripted.now)
    assert scripted.wait == 0
    assert scripted.member.news_due_at is None  # before it is answered
    scripted.beat(**HOLDS)
    assert scripted.member.news_due_at == scripted.now + 50
    ask(scripted)
    scripted.member.on_news_failure(scripted.now)
    scripted.beat(**HOLDS)
    assert scripted.member.news_due_at == scripted.now + 100


def test_while_heartbeats_are_not_answered_there_is_no_news_to_ask_for() -> None:
    scripted = joined()
    scripted.now += INTERVAL
    scripted.sent()
    scripted.member.on_failure(scripted.now)
    assert scripted.member.news_due_at is None
    scripted.beat(tasks={A: ACTIVE}, **HOLDS)
    assert scripted.member.news_due_at is not None


def test_who_is_not_in_the_group_asks_for_no_news() -> None:
    scripted = member()
    assert scripted.member.news_due_at is None
    scripted = joined()
    scripted.now += INTERVAL
    scripted.beat(error=ErrorCode.FENCED_MEMBER_EPOCH)
    assert scripted.member.state is State.FENCED
    assert scripted.member.news_due_at is None
    scripted = joined()
    scripted.member.quit(scripted.now)
    assert scripted.member.news_due_at is None
