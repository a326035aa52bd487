"""A member of a share group: heartbeats, answers, and what it does about errors."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from kohort.client.backoff import Backoff
from kohort.client.errors import UnsupportedError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.sharing.membership import HEARTBEAT_ERRORS, ShareMembership, State
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

A = UUID(int=1)
SHARES = ShareGroupHeartbeatResponse.Assignment(topic_partitions=[TopicPartitions(topic_id=A, partitions=(0, 1))])


def member(*topics: str) -> ShareMembership:
    made = ShareMembership("g", "m", "r1", Backoff(100, 1000, Random(1)))
    if topics:
        made.subscribe(topics, 0)
    return made


def answer(
    epoch: int = 1,
    *,
    error: ErrorCode = ErrorCode.NONE,
    assignment: ShareGroupHeartbeatResponse.Assignment | None = SHARES,
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error,
        error_message="why" if error else None,
        member_id="m",
        member_epoch=epoch,
        heartbeat_interval_ms=3000,
        assignment=assignment,
    )


def beat(
    subject: ShareMembership, response: ShareGroupHeartbeatResponse, now: float = 0
) -> tuple[ShareGroupHeartbeatRequest, Reaction]:
    assert subject.due_at is not None and subject.due_at <= now
    request = subject.request()
    assert subject.due_at is None, "one at a time"
    return request, subject.on_response(request, response, now)


def test_it_joins_and_then_says_only_what_is_new() -> None:
    subject = member("b", "a")
    request, _ = beat(subject, answer())
    assert (request.member_epoch, request.rack_id, request.subscribed_topic_names) == (0, "r1", ("a", "b"))
    assert (subject.state, subject.epoch, subject.due_at) == (State.STABLE, 1, 3000)
    assert subject.assignment == {(A, 0), (A, 1)}
    request, _ = beat(subject, answer(2, assignment=None), 3000)
    assert (request.member_epoch, request.rack_id, request.subscribed_topic_names) == (1, None, None)
    assert subject.assignment == {(A, 0), (A, 1)} and subject.epoch == 2
    subject.subscribe(["c"], 4000)
    request, _ = beat(subject, answer(3), 4000)
    assert request.subscribed_topic_names == ("c",)


def test_a_subscription_that_changes_while_a_heartbeat_is_under_way_is_told_next() -> None:
    subject = member("a")
    request = subject.request()
    subject.subscribe(["b"], 5)
    subject.on_response(request, answer(), 10)
    assert subject.due_at == 10
    assert subject.request().subscribed_topic_names == ("b",)


@pytest.mark.parametrize(
    "error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_member_has_nothing_and_joins_again(error: ErrorCode) -> None:
    subject = member("a")
    beat(subject, answer())
    _, reaction = beat(subject, answer(error=error), 3000)
    assert reaction is Reaction.REJOIN and not subject.assignment
    request, _ = beat(subject, answer(7), 3000)
    assert (request.member_epoch, request.subscribed_topic_names) == (0, ("a",))
    assert subject.epoch == 7 and subject.assignment


def test_after_no_answer_everything_is_said_again() -> None:
    subject = member("a")
    beat(subject, answer())
    subject.due_at = 3000
    subject.request()
    subject.on_failure(3000)
    assert subject.due_at is not None and subject.due_at > 3000 and subject.assignment
    assert subject.request().subscribed_topic_names == ("a",)


def test_it_leaves_once_whether_that_is_answered_or_not() -> None:
    for answered in (True, False):
        subject = member("a")
        beat(subject, answer())
        subject.leave(10)
        request = subject.request()
        assert request.member_epoch == -1 and not subject.assignment
        if answered:
            subject.on_response(request, answer(-1), 10)
        else:
            subject.on_failure(10)
        assert (subject.state, subject.due_at) == (State.UNSUBSCRIBED, None)


def test_a_late_answer_does_not_bring_back_one_that_leaves() -> None:
    subject = member("a")
    request = subject.request()
    subject.leave(1)
    subject.on_response(request, answer(), 2)
    assert subject.state is State.LEAVING and not subject.assignment and subject.due_at == 1


def test_a_late_answer_is_not_taken_for_that_of_a_new_join() -> None:
    subject = member("a")
    beat(subject, answer())
    late = subject.request()
    subject.subscribe([], 1)
    subject.subscribe(["a"], 1)
    assert subject.on_response(late, answer(assignment=None), 1) is Reaction.ACCEPT
    assert (subject.state, subject.due_at) == (State.JOINING, 1)
    joined, _ = beat(subject, answer(), 1)
    assert (joined.member_epoch, joined.subscribed_topic_names) == (0, ("a",))
    assert subject.assignment


def test_a_member_that_was_refused_tries_again_with_another_subscription() -> None:
    subject = member("a")
    beat(subject, answer(error=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert (subject.state, subject.due_at) == (State.FAILED, None)
    assert isinstance(subject.error, KafkaError) and "READ on the group" in str(subject.error)
    subject.subscribe(["b"], 5)
    beat(subject, answer(), 5)
    assert subject.error is None and subject.assignment


def test_brokers_without_share_groups_are_told_from_others() -> None:
    subject = member("a")
    beat(subject, answer(error=ErrorCode.UNSUPPORTED_VERSION))
    assert isinstance(subject.error, UnsupportedError) and "share.version" in str(subject.error)


def test_what_is_done_about_every_error() -> None:
    for code, (reaction, _) in HEARTBEAT_ERRORS.reactions.items():
        assert HEARTBEAT_ERRORS.reaction_to(code, joining=True) is reaction
    assert HEARTBEAT_ERRORS.reaction_to(ErrorCode.REQUEST_TIMED_OUT, joining=True) is Reaction.RETRY
    assert HEARTBEAT_ERRORS.reaction_to(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, joining=True) is Reaction.FAIL
    assert HEARTBEAT_ERRORS.reaction_to(9999, joining=True) is Reaction.FAIL
