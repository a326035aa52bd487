"""DescribeUserScramCredentials: who the users are."""

from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.test_alter_user_scram_credentials import SHA_512, alter, described, upsertion


def test_all_users(ask: Ask) -> None:
    assert described(ask) == {}
    alter(ask, upsertion("alice"), upsertion("bob", SHA_512, 8192))
    assert described(ask) == {"alice": [(1, 4096)], "bob": [(2, 8192)]}


def test_users_by_name(ask: Ask) -> None:
    alter(ask, upsertion("alice"), upsertion("bob"))
    assert described(ask, "alice", "nobody", "bob", "bob") == {
        "alice": [(1, 4096)],
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "bob": ErrorCode.DUPLICATE_RESOURCE,
    }
