"""Super users, what counts without rules, and decisions that are remembered until a rule changes."""

from __future__ import annotations

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.security.acls import Acl
from kohort.security.standard_authorizer import CACHED_DECISIONS, StandardAuthorizer

TOPIC = ResourceType.TOPIC
ALLOWED = Acl(TOPIC, "t", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)
DENIED = ALLOWED._replace(permission=Permission.DENY)
READ = ("User:alice", "::1", Operation.READ, TOPIC, "t")


def test_what_no_rule_allows_is_denied() -> None:
    authorizer = StandardAuthorizer()
    assert not authorizer.allowed(*READ)
    authorizer.add(ALLOWED)
    assert authorizer.allowed(*READ)
    authorizer.add(DENIED)
    assert not authorizer.allowed(*READ)
    authorizer.remove(DENIED)
    assert authorizer.allowed(*READ)


def test_everyone_may_where_there_is_no_rule() -> None:
    authorizer = StandardAuthorizer(allow_without_rules=True)
    assert authorizer.allowed(*READ)
    assert authorizer.allowed_on_any("User:bob", "::1", Operation.WRITE, TOPIC)
    authorizer.add(ALLOWED._replace(principal="User:bob"))
    assert not authorizer.allowed(*READ)


def test_a_super_user_may_what_is_denied() -> None:
    authorizer = StandardAuthorizer(["User:alice"])
    authorizer.add(DENIED)
    assert authorizer.allowed(*READ)
    assert authorizer.allowed_on_any("User:alice", "::1", Operation.WRITE, TOPIC)
    assert not authorizer.allowed_on_any("User:bob", "::1", Operation.WRITE, TOPIC)


def test_what_is_remembered_has_a_bound() -> None:
    authorizer = StandardAuthorizer()
    for number in range(CACHED_DECISIONS + 10):
        authorizer.allowed("User:alice", "::1", Operation.READ, TOPIC, str(number))
    authorizer.allowed("User:alice", "::1", Operation.READ, TOPIC, "x" * 10_000)
    assert len(authorizer._cache) == 10
