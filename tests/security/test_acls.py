"""Rules that can't be, and what filters find."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.security.acls import Acl, AclFilter

ACL = Acl(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
)  # fmt: skip
PREFIX = ACL._replace(pattern=PatternType.PREFIXED, name="ord")
WILDCARD = ACL._replace(name="*")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"kind": ResourceType.ANY}, "one type of resource"),
        ({"kind": ResourceType.CLUSTER}, "kafka-cluster"),
        ({"name": ""}, "empty"),
        ({"pattern": PatternType.MATCH}, "not MATCH"),
        ({"operation": Operation.ANY}, "one operation"),
        ({"permission": Permission.ANY}, "allows or denies"),
        ({"principal": "alice"}, "no type"),
    ],
)
def test_a_rule_that_can_not_be(change: dict[str, Any], problem: str | None) -> None:
    found = ACL._replace(**change).problem()
    assert found is None if problem is None else problem in (found or "")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), [ACL, PREFIX, WILDCARD]),
        (AclFilter(kind=ResourceType.GROUP), []),
        (AclFilter(name="orders"), [ACL]),
        (AclFilter(name="orders", pattern=PatternType.MATCH), [ACL, PREFIX, WILDCARD]),
        (AclFilter(name="ordinary", pattern=PatternType.MATCH), [PREFIX, WILDCARD]),
        (AclFilter(name="*", pattern=PatternType.LITERAL), [WILDCARD]),
        (AclFilter(pattern=PatternType.PREFIXED), [PREFIX]),
        (AclFilter(principal="User:bob"), []),
        (AclFilter(host="h"), []),
        (AclFilter(operation=Operation.WRITE), []),
        (AclFilter(operation=Operation.READ, permission=Permission.ALLOW, host="*"), [ACL, PREFIX, WILDCARD]),
        (AclFilter(permission=Permission.DENY), []),
    ],
)
def test_what_a_filter_finds(wanted: AclFilter, found: list[Acl]) -> None:
    assert [acl for acl in (ACL, PREFIX, WILDCARD) if wanted.matches(acl)] == found
