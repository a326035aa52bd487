"""`kohort acls`, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.administering import Cluster, cluster, rows

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Cluster]:
    with cluster(AUTHORIZED) as found:
        yield found


@pytest.fixture
def at(broker: Cluster) -> Cluster:
    for acl in broker.json("acls", "list"):
        kind = "--" + acl["resource"].replace("_", "-")
        about = [kind] if acl["resource"] == "cluster" else [kind, acl["name"]]
        prefixed = ["--prefixed"] if acl["pattern"] == "prefixed" else []
        broker.run("acls", "remove", acl["principal"], acl["operation"], *about, *prefixed, "--yes")
    assert broker.json("acls", "list") == []
    return broker


def test_rules_are_added_listed_and_removed(at: Cluster) -> None:
    added = at.ok("acls", "add", "User:alice", "read", "describe-configs", "--topic", "orders-", "--prefixed")
    assert "added: allow User:alice to read topics that begin with orders-" in added
    at.ok("acls", "add", "User:bob", "all", "--group", "*", "--deny", "--host", "10.0.0.7")
    assert rows(at.ok("acls", "list"))[1:] == [
        ["User:alice", "allow", "read", "topic", "prefixed", "orders-", "*"],
        ["User:alice", "allow", "describe_configs", "topic", "prefixed", "orders-", "*"],
        ["User:bob", "deny", "all", "group", "literal", "*", "10.0.0.7"],
    ]
    assert [acl["operation"] for acl in at.json("acls", "list", "--topic", "orders-x", "--covering")] == [
        "read",
        "describe_configs",
    ]
    assert at.json("acls", "list", "--topic", "orders-x") == []
    assert [acl["principal"] for acl in at.json("acls", "list", "--principal", "User:bob")] == ["User:bob"]
    assert [acl["operation"] for acl in at.json("acls", "list", "--operation", "read")] == ["read"]
    removed = at.ok("acls", "remove", "User:alice", "read", "--topic", "orders-", "--prefixed", "--yes")
    assert removed.splitlines() == ["removed: allow User:alice to read topics that begin with orders-"]
    assert "from 10.0.0.7" in at.ok("acls", "remove", "User:bob", "--group", "*", "--yes")
    assert [acl["operation"] for acl in at.json("acls", "list")] == ["describe_configs"]


def test_every_kind_of_resource(at: Cluster) -> None:
    for about in (["--cluster"], ["--transactional-id", "t"], ["--user", "User:x"]):
        at.ok("acls", "add", "User:*", "describe", *about)
    assert {acl["resource"] for acl in at.json("acls", "list")} == {"cluster", "transactional_id", "user"}


def test_what_is_no_rule(at: Cluster) -> None:
    assert "no such operation" in at.fails("acls", "add", "User:a", "reed", "--topic", "t", code=2)
    assert "no such operation" in at.fails("acls", "add", "User:a", "any", "--topic", "t", code=2)
    assert "is needed" in at.fails("acls", "add", "User:a", "read", code=2)
    assert "one resource" in at.fails("acls", "add", "User:a", "read", "--topic", "t", "--group", "g", code=2)
    assert "--covering needs" in at.fails("acls", "list", "--covering", code=2)
    assert "no rule matches" in at.fails("acls", "remove", "User:a", "--topic", "t", "--yes")
    assert "INVALID_REQUEST" in at.fails("acls", "add", "alice", "read", "--topic", "t")
    assert at.json("acls", "list") == []


def test_without_an_authorizer() -> None:
    with cluster() as plain:
        assert "SECURITY_DISABLED" in plain.fails("acls", "list")


def test_who_has_no_right_is_told_so() -> None:
    with cluster({**AUTHORIZED, "super.users": "User:admin"}) as closed:
        assert "CLUSTER_AUTHORIZATION_FAILED" in closed.fails("acls", "list")
        assert "CLUSTER_AUTHORIZATION_FAILED" in closed.fails("acls", "add", "User:ANONYMOUS", "all", "--cluster")
        assert "TOPIC_AUTHORIZATION_FAILED" in closed.fails("topics", "create", "t")
        assert closed.json("topics", "list") == []
