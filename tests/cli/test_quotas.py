"""`kohort quotas`, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.administering import Cluster, cluster, rows


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def test_quotas_are_set_listed_and_removed(at: Cluster) -> None:
    assert at.ok("quotas", "set", "--user", "alice", "producer_byte_rate=1048576", "request_percentage=12.5") == (
        "set: producer_byte_rate=1,048,576 of user alice\nset: request_percentage=12.5 of user alice\n"
    )
    at.ok("quotas", "set", "--user", "alice", "--default-client-id", "consumer_byte_rate=2000")
    at.ok("quotas", "set", "--default-ip", "connection_creation_rate=20")
    assert rows(at.ok("quotas", "list"))[1:] == [
        ["user alice, client id by default", "consumer_byte_rate", "2,000"],
        ["user alice", "producer_byte_rate", "1,048,576"],
        ["user alice", "request_percentage", "12.5"],
        ["address by default", "connection_creation_rate", "20"],
    ]
    assert at.json("quotas", "list", "--user", "alice", "--default-client-id") == [
        {"user": "alice", "client_id": None, "quotas": {"consumer_byte_rate": 2000.0}}
    ]
    assert at.json("quotas", "list", "--default-user") == []
    removed = at.ok("quotas", "remove", "--user", "alice", "request_percentage", "--yes")
    assert removed == "removed: request_percentage=12.5 of user alice\n"
    at.ok("quotas", "remove", "--user", "alice", "--yes")
    assert at.json("quotas", "list", "--user", "alice") != []  # of its client ids
    at.ok("quotas", "remove", "--user", "alice", "--default-client-id", "--yes")
    at.ok("quotas", "remove", "--default-ip", "--yes")
    assert at.json("quotas", "list") == []


@pytest.mark.parametrize(
    ("call", "said", "code"),
    [
        (["set", "producer_byte_rate=1"], "of whom? --user, --client-id, --ip", 2),
        (["remove"], "of whom?", 2),
        (["set", "--user", "a", "--default-user", "producer_byte_rate=1"], "exclude each other", 2),
        (["set", "--user", "a", "producer_byte_rate"], "QUOTA=VALUE is needed", 2),
        (["set", "--user", "a", "producer_byte_rate=lots"], "QUOTA=VALUE is needed", 2),
        (["set", "--user", "a", "producer_byte_rate=nan"], "QUOTA=VALUE is needed", 2),
        (["set", "--user", "a", "speed=1"], "There is no quota 'speed'", 1),
        (["set", "--ip", "a.b", "connection_creation_rate=1"], "is no IP address", 1),
        (["remove", "--user", "a", "--yes"], "there is no such quota of user a", 1),
    ],
)
def test_a_call_that_can_not_be(at: Cluster, call: list[str], said: str, code: int) -> None:
    assert said in at.fails("quotas", *call, code=code)
    assert at.json("quotas", "list") == []
