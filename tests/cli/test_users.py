"""`kohort users`, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.administering import Cluster, cluster, rows


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster({}) as found:
        yield found


def test_users_are_set_listed_and_deleted(at: Cluster, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    assert "set: alice with SCRAM-SHA-512" in at.ok("users", "set", "alice", "--password-file", str(password))
    at.ok("users", "set", "bob", *both, "--iterations", "4096", "--password-file", str(password))
    assert rows(at.ok("users", "list"))[1:] == [
        ["alice", "SCRAM-SHA-512", "8,192"],
        ["bob", "SCRAM-SHA-256", "4,096"],
        ["bob", "SCRAM-SHA-512", "4,096"],
    ]
    none = at.run("users", "list", "--pattern", "zz")
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "no such users\n")
    at.ok("users", "delete", "bob", "--mechanism", "SCRAM-SHA-256", "--yes")
    assert at.ok("users", "delete", "alice", "--yes") == "deleted: alice with SCRAM-SHA-512\n"
    assert at.json("users", "list") == [{"name": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 4096}]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["set", "alice"], "there is no terminal to ask for the password"),
        (["set", "alice", "--password-file", "/nowhere/x"], "--password-file /nowhere/x: "),
        (["set", "alice", "--password-file", "/dev/null"], "the password is empty"),
        (["set", "alice", "--mechanism", "PLAIN"], "--mechanism PLAIN: one of SCRAM-SHA-256, SCRAM-SHA-512 is needed"),
        (["delete", "nobody", "--yes"], "nobody"),
    ],
)
def test_a_call_that_can_not_be(at: Cluster, call: list[str], said: str) -> None:
    result = at.run("users", *call)
    assert result.exit_code != 0
    assert said in result.stderr
