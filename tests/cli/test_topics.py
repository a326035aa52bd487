"""`kohort topics`, as a user calls it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.client.types import TopicPartition
from tests.cli.administering import Cluster, cluster, rows
from tests.client.administration.members import write_at


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture(autouse=True)
def clean(at: Cluster) -> Iterator[None]:
    yield
    names = [topic["name"] for topic in at.json("topics", "list")]
    if names:
        at.ok("topics", "delete", *names)


def test_create_list_describe_alter_delete(at: Cluster) -> None:
    assert (
        at.ok("topics", "create", "flights", "--partitions", "4")
        == "created flights with 4 partitions, 1 replica each\n"
    )
    at.ok("topics", "create", "weather", "ports", "--set", "cleanup.policy=compact", "--set", "retention.ms=1000")
    assert rows(at.ok("topics", "list")) == [
        ["Topic", "Partitions", "Replicas", "Health"],
        ["flights", "4", "1", "fine"],
        ["ports", "1", "1", "fine"],
        ["weather", "1", "1", "fine"],
    ]
    asyncio.run(write_at(at.servers, TopicPartition("flights", 1), [1, 2, 3]))
    described = at.ok("topics", "describe", "flights")
    assert ["1", "1", "1", "1", "0", "3"] in rows(described)
    assert "records, by their offsets: 3" in described
    assert "settings: cleanup.policy=compact, retention.ms=1000" in at.ok("topics", "describe", "ports")
    at.ok("topics", "alter", "ports", "--partitions", "2", "--set", "max.message.bytes=99", "--unset", "cleanup.policy")
    (ports,) = at.json("topics", "describe", "ports")
    assert ports["settings"] == {"max.message.bytes": "99", "retention.ms": "1000"}
    assert [partition["leader"] for partition in ports["partitions"]] == [1, 1]
    assert at.ok("topics", "delete", "ports", "weather") == "deleted ports, weather\n"
    assert [topic["name"] for topic in at.json("topics", "list")] == ["flights"]


def test_json_of_what_was_created(at: Cluster) -> None:
    (created,) = at.json("topics", "create", "t", "--replica-assignment", "1,1")
    assert (created["name"], created["partitions"], created["replication_factor"]) == ("t", 2, 1)
    assert at.json("topics", "create", "t", "u", "--if-not-exists", "--validate-only")[0]["name"] == "u"
    assert at.ok("topics", "create", "t", "--if-not-exists") == "t exists already\n"
    assert at.json("topics", "list")[0]["topic_id"] == created["topic_id"]


def test_what_is_wrong_is_said(at: Cluster) -> None:
    at.ok("topics", "create", "flights")
    assert "TOPIC_ALREADY_EXISTS" in at.fails("topics", "create", "flights")
    assert at.fails("topics", "describe", "flihgts") == "error: there is no topic 'flihgts'; did you mean 'flights'?"
    assert "see 'kohort topics list'" in at.fails("topics", "delete", "xyz", "flights")
    assert at.ok("topics", "delete", "xyz", "--if-exists") == "deleted nothing\n"
    assert "INVALID_PARTITIONS" in at.fails("topics", "alter", "flights", "--partitions", "1")
    assert "nope" in at.fails("topics", "alter", "flights", "--set", "nope=1")
    some = at.run("topics", "create", "flights", "new")
    assert some.exit_code == 1
    assert "error: flights: Topic 'flights' already exists (TOPIC_ALREADY_EXISTS)" in some.stderr
    assert "done: new" in some.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "t", "--set", "retention"], "KEY=VALUE is wanted"),
        (["create", "t", "--replica-assignment", "a"], "broker ids are wanted"),
        (["create", "t", "--replica-assignment", "1", "--partitions", "2"], "leave these options out"),
        (["alter", "t"], "nothing to alter"),
        (["delete-records", "t:x", "--before", "1"], "'x' is no partition"),
        (["delete-records", "t:3-1", "--before", "1"], "'3-1' is no partition"),
        (["delete-records", "t", "--before", "soon"], "an offset is wanted"),
        (["list", "--config", "/none"], "/none"),
        (["list", "--timeout", "0"], "0 s: from 0.001 s to a day is possible"),
    ],
)
def test_wrong_calls(at: Cluster, arguments: list[str], said: str) -> None:
    assert said in at.fails("topics", *arguments, code=2)


def test_records_are_deleted(at: Cluster) -> None:
    at.ok("topics", "create", "t", "--partitions", "3")
    asyncio.run(write_at(at.servers, TopicPartition("t", 1), [1, 2, 3]))
    at.ok("topics", "delete-records", "t:1", "--before", "2")
    slip = at.fails("topics", "delete-records", "t:1,7-8", "--before", "latest")
    assert slip == "error: there is no partition t-7, t-8"
    assert at.json("topics", "describe", "t")[0]["partitions"][1]["first_offset"] == 2
    assert at.json("topics", "delete-records", "t:0,1-2", "--before", "latest") == [
        {"topic": "t", "partition": 0, "first_offset": 0},
        {"topic": "t", "partition": 1, "first_offset": 3},
        {"topic": "t", "partition": 2, "first_offset": 0},
    ]


def test_the_cluster_comes_from_the_option_the_file_or_the_environment(at: Cluster, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(f"bootstrap.servers={at.servers}\nlinger.ms=5\n")
    bad.write_text("bootstrap.serves=x\n")

    def call(*arguments: str, servers: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kohort.cli", "topics", "list", "--json", "--timeout", "0.4", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KOHORT_BOOTSTRAP_SERVERS": servers, "COLUMNS": "200"},
        )

    assert call("--timeout", "9", servers=at.servers).stdout == "[]\n"
    assert call("--timeout", "9", "--config", str(good), servers="localhost:1").stdout == "[]\n"
    nobody = call("--config", str(good), "-b", "localhost:1", servers=at.servers)
    assert nobody.returncode == 1
    assert "no broker answered within 400 ms" in nobody.stderr
    assert "localhost:1" in nobody.stderr
    wrong = call("--config", str(bad), servers=at.servers)
    assert wrong.returncode == 2
    assert "bootstrap.servers" in wrong.stderr
