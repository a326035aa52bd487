"""`kohort cluster`, as a user calls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from kohort.client.administration.group_types import GroupListing
from kohort.client.administration.groups import Groups
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.cli.administering import Cluster, cluster, rows
from tests.client.administration.members import join_classic


@pytest.fixture
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def test_a_cluster_at_a_glance(at: Cluster) -> None:
    assert rows(at.ok("cluster"))[0][0].endswith(": 1 broker, 0 topics, 0 partitions, 0 groups")
    at.ok("topics", "create", "flights", "--partitions", "3")
    asyncio.run(join_classic(at.servers, "readers", TopicPartition("flights", 0)))
    shown = rows(at.ok("cluster"))
    assert shown[0][0].endswith(": 1 broker, 1 topic, 3 partitions, 1 group")
    assert ["1", at.servers, "-", "3", "controller"] in shown
    assert ["flights", "3", "1", "fine"] in shown
    assert ["readers", "classic", "Stable", "consumer", "1"] in shown
    assert any(row[0] == "__consumer_offsets" for row in rows(at.ok("cluster", "--internal")))


def test_the_same_as_json(at: Cluster) -> None:
    at.ok("topics", "create", "flights", "--partitions", "2")
    found = at.json("cluster")
    host, _, port = at.servers.rpartition(":")
    assert found["brokers"] == [{"node_id": 1, "host": host, "port": int(port), "rack": None, "leads": 2}]
    assert (found["controller"], [topic["name"] for topic in found["topics"]], found["groups"]) == (1, ["flights"], [])
    assert found["cluster_id"]


def test_without_its_groups_the_rest_is_shown(at: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(groups: Groups, **options: object) -> list[GroupListing]:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    at.ok("topics", "create", "flights")
    monkeypatch.setattr(Groups, "list", refused)
    done = at.run("cluster")
    assert done.exit_code == 1
    assert "the groups can't be listed: " in done.stderr and "COORDINATOR_LOAD_IN_PROGRESS" in done.stderr
    shown = rows(done.stdout)
    assert shown[0][0].endswith(": 1 broker, 1 topic, 1 partition")
    assert ["flights", "1", "1", "fine"] in shown
    as_json = at.run("cluster", "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["groups"]) == (1, None)
