from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.share.sessions import ShareSession, ShareSessions
from kohort.protocol.errors import ErrorCode, KafkaError

TOPIC = UUID(int=1)
A, B, C = ((TOPIC, index) for index in range(3))


def opened(sessions: ShareSessions, member: str = "m", connection: str = "c1") -> ShareSession:
    return sessions.open("g", member, connection, [A, B])


def code(caught: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return caught.value.code


def test_a_session_goes_on_with_changes_alone() -> None:
    sessions = ShareSessions(2)
    session = opened(sessions)
    assert (session.epoch, list(session.partitions)) == (1, [A, B])
    assert sessions.advance("g", "m", 1, added=[C], forgotten=[A]) is session
    assert (session.epoch, list(session.partitions)) == (2, [B, C])
    assert (len(sessions), sessions.partitions()) == (1, 2)


@pytest.mark.parametrize("epoch", [0, 2, 7, -2])
def test_another_epoch_changes_nothing(epoch: int) -> None:
    sessions = ShareSessions(2)
    session = opened(sessions)
    with pytest.raises(KafkaError) as caught:
        sessions.advance("g", "m", epoch, added=[C])
    assert code(caught) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert (session.epoch, list(session.partitions)) == (1, [A, B])


def test_a_session_is_that_of_a_member_in_a_group() -> None:
    sessions = ShareSessions(2)
    opened(sessions)
    for group, member in (("g", "other"), ("other", "m")):
        with pytest.raises(KafkaError) as caught:
            sessions.advance(group, member, 1)
        assert code(caught) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_the_epoch_goes_round() -> None:
    sessions = ShareSessions(2)
    session = opened(sessions)
    session.epoch = 2**31 - 1
    sessions.advance("g", "m", 2**31 - 1)
    assert session.epoch == 1


def test_a_member_that_opens_again_takes_no_second_place() -> None:
    sessions = ShareSessions(1)
    old = opened(sessions)
    new = opened(sessions, connection="c2")
    assert new is not old
    assert sessions.get("g", "m") is new
    with pytest.raises(KafkaError) as caught:
        opened(sessions, "other")
    assert code(caught) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.disconnected("c1") == []  # the older session's connection
    assert sessions.remove("g", "m") is new
    opened(sessions, "other")


def test_sessions_end_with_the_connection_that_opened_them() -> None:
    sessions = ShareSessions(3)
    one, two = opened(sessions, "one"), opened(sessions, "two")
    three = opened(sessions, "three", connection="c2")
    assert sessions.disconnected("c1") == [one, two]
    assert sessions.has_members("g")
    assert sessions.disconnected("c2") == [three]
    assert not sessions.has_members("g")
    assert sessions.disconnected("c2") == []
    assert (len(sessions), sessions._of_connection, sessions._of_group) == (0, {}, {})


def test_no_partition_is_always_the_last() -> None:
    sessions = ShareSessions(1)
    session = sessions.open("g", "m", "c", [A, B, C])
    assert [session.rotated(epoch)[0] for epoch in range(5)] == [A, B, C, A, B]
    assert session.rotated(4) == [B, C, A]
    assert ShareSession("g", "m", "c").rotated(4) == []


def test_a_response_has_what_is_new() -> None:
    session = opened(ShareSessions(1))
    assert not session.must_respond(A, has_records=False, failed=False)
    assert session.must_respond(A, has_records=False, failed=True)
    assert session.must_respond(A, has_records=False, failed=False)  # the error is gone
    assert not session.must_respond(A, has_records=False, failed=False)
    assert session.must_respond(A, has_records=True, failed=False)
    assert session.must_respond(C, has_records=True, failed=False)
    assert C not in session.partitions  # forgotten while it was read
