"""The index decides as a search through all rules would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.security.acl_index import AclIndex
from kohort.security.acls import EVERYONE, WILDCARD, Acl

NAMES = ("a", "ab", "abc", "b", WILDCARD)
ACLS = st.builds(
    Acl,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:a", "User:b", EVERYONE]),
    st.sampled_from(["h1", "h2", WILDCARD]),
    st.sampled_from([Operation.ALL, Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS]),
    st.sampled_from([Permission.DENY, Permission.ALLOW]),
)
IMPLIES = {
    Operation.DESCRIBE: {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS},
}


def covers(acl: Acl, kind: ResourceType, name: str) -> bool:
    if acl.kind is not kind:
        return False
    if acl.pattern is PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, WILDCARD)


def applies(acl: Acl, principal: str, host: str, operation: Operation) -> bool:
    if acl.principal not in (principal, EVERYONE) or acl.host not in (host, WILDCARD):
        return False
    if acl.operation is Operation.ALL:
        return True
    if acl.permission is Permission.ALLOW:
        return acl.operation in IMPLIES.get(operation, {operation})
    return acl.operation is operation


def searched(acls: set[Acl], principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> object:
    about = [acl for acl in acls if covers(acl, kind, name)]
    if not about:
        return None
    permissions = {acl.permission for acl in about if applies(acl, principal, host, operation)}
    return Permission.DENY not in permissions and Permission.ALLOW in permissions


@given(st.lists(st.tuples(st.booleans(), ACLS), max_size=25))
def test_decides_as_a_search_would(changes: list[tuple[bool, Acl]]) -> None:
    index = AclIndex()
    acls: set[Acl] = set()
    for added, acl in changes:
        (index.add if added else index.remove)(acl)
        (acls.add if added else acls.discard)(acl)
    for name in (*NAMES, "abcd", "c"):
        for operation in (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.WRITE):
            for principal in ("User:a", "User:c"):
                asked = (principal, "h1", operation, ResourceType.TOPIC, name)
                assert index.decide(*asked) is searched(acls, *asked), asked
    for acl in acls:
        index.remove(acl)
    assert index.decide("User:a", "h1", Operation.READ, ResourceType.TOPIC, "a") is None


def rule(
    permission: Permission, name: str, pattern: PatternType = PatternType.LITERAL, principal: str = "User:a"
) -> Acl:
    return Acl(ResourceType.TOPIC, name, pattern, principal, WILDCARD, Operation.WRITE, permission)


DENY, ALLOW = Permission.DENY, Permission.ALLOW
PREFIXED = PatternType.PREFIXED


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([rule(ALLOW, "a")], True),
        ([rule(ALLOW, "a", principal="User:b")], False),
        ([rule(ALLOW, "a", principal=EVERYONE)], True),
        ([rule(ALLOW, "a"), rule(DENY, "a")], False),
        ([rule(ALLOW, "a"), rule(DENY, "b")], True),
        ([rule(ALLOW, "a", PREFIXED), rule(DENY, "a")], True),
        ([rule(ALLOW, "ab", PREFIXED), rule(DENY, "a", PREFIXED)], False),
        ([rule(ALLOW, "ab"), rule(DENY, "a", PREFIXED)], False),
        ([rule(ALLOW, WILDCARD), rule(DENY, "a", PREFIXED)], True),
        ([rule(ALLOW, WILDCARD), rule(DENY, WILDCARD)], False),
    ],
)
def test_allowed_on_any(acls: list[Acl], allowed: bool) -> None:
    index = AclIndex()
    for acl in acls:
        index.add(acl)
    assert index.allowed_on_any("User:a", "h", Operation.WRITE, ResourceType.TOPIC) is allowed
    assert not index.allowed_on_any("User:a", "h", Operation.WRITE, ResourceType.GROUP)


def test_a_decision_looks_at_few_of_many_rules() -> None:
    index = AclIndex()
    for number in range(2_000):
        index.add(rule(ALLOW, f"topic-{number}"))
        index.add(rule(ALLOW, f"prefix-{number:04}-", PREFIXED))
    assert len(list(index._covering(ResourceType.TOPIC, "topic-7"))) == 1
    assert index._prefix_lengths[ResourceType.TOPIC].keys() == {len("prefix-0000-")}
