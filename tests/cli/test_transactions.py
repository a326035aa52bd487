"""`kohort transactions`, as a user calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kohort.client.types import TopicPartition
from tests.cli.administering import Cluster, cluster, rows
from tests.client.administration.members import open_transaction


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        assert found.json("transactions", "list") == []
        assert "no transactional ids yet" in found.run("transactions", "list").stderr
        found.ok("topics", "create", "t")
        asyncio.run(open_transaction(found.servers, "billing", TopicPartition("t", 0)))
        yield found


def test_what_is_open_is_listed(at: Cluster) -> None:
    assert rows(at.ok("transactions", "list"))[1][:2] == ["billing", "Ongoing"]
    assert [each["transactional_id"] for each in at.json("transactions", "list", "--state", "ongoing")] == ["billing"]
    assert at.json("transactions", "list", "--state", "Empty") == []
    assert "no such transactions" in at.run("transactions", "list", "--longer-than", "1h").stderr


def test_a_transaction_is_described(at: Cluster) -> None:
    (found,) = at.json("transactions", "describe", "billing")
    assert (found["state"], found["timeout_ms"], found["partitions"]) == ("Ongoing", 60_000, {"t": [0]})
    assert found["start_ms"] > 0
    shown = rows(at.ok("transactions", "describe", "billing"))
    assert (shown[1][0], shown[1][1], shown[1][4], shown[1][-1]) == ("billing", "Ongoing", "60 s", "t: 0")


def test_what_is_wrong_is_said(at: Cluster) -> None:
    assert "there is no such transactional id" in at.fails("transactions", "describe", "nobody")
    assert "one of Empty, Ongoing" in at.fails("transactions", "list", "--state", "odd", code=2)
    assert "a duration is wanted" in at.fails("transactions", "list", "--longer-than", "soon", code=2)
