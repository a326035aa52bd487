"""`kohort logdirs`, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.cli.logdirs import as_json_document, usage
from kohort.client.administration.cluster_info import LogDir, ReplicaSize
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.cli.administering import Cluster, cluster, rows


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    records: Path = tmp_path_factory.mktemp("records") / "lines"
    records.write_text("x" * 1000 + "\n")
    with cluster() as found:
        found.ok("topics", "create", "big", "small", "--partitions", "2")
        found.ok("produce", "big", str(records), "--partition", "1", "--quiet")
        yield found


def test_topics_are_shown_with_their_sizes_the_largest_first(at: Cluster) -> None:
    shown = rows(at.ok("logdirs"))
    assert shown[0] == ["Broker", "Directory", "Logs", "Partitions", "Free", "Of"]
    assert shown[2] == ["Topic", "Partitions", "Size", "Lag"]
    assert shown[3][:2] == ["big", "2"] and shown[3][2].endswith("kB") and shown[4] == ["small", "2", "0 B", "0"]
    assert rows(at.ok("logdirs", "--partitions", "big"))[3][:2] == ["big", "1"]
    limited = at.run("logdirs", "--limit", "1")
    assert "small" not in limited.stdout and "and 1 more" in limited.stderr


def test_json_has_every_partition(at: Cluster) -> None:
    (directory,) = at.json("logdirs", "big")
    assert directory["node_id"] == directory["broker"] == 1
    assert directory["error"] is None and directory["usable_bytes"] > 0
    sizes = {(each["topic"], each["partition"]): each["size_bytes"] for each in directory["partitions"]}
    assert sizes.keys() == {("big", 0), ("big", 1)} and sizes["big", 1] > 1000 and sizes["big", 0] == 0


def test_what_is_not_there_is_said(at: Cluster) -> None:
    assert "there is no topic 'bog'; did you mean 'big'?" in at.fails("logdirs", "bog")
    assert "there is no broker 7; there are 1" in at.fails("logdirs", "--broker", "7")
    assert at.json("logdirs", "--broker", "1") != []


def test_replicas_of_several_brokers_and_moves_are_told_apart() -> None:
    t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)
    replicas = {t0: ReplicaSize(10, 0, False), t1: ReplicaSize(20, 3, False)}
    broken = LogDir("/b", KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), None, None, {})
    found = {
        1: (LogDir("/a", None, 100, 50, replicas), broken),
        2: (LogDir("/a", None, 100, 50, {t0: ReplicaSize(7, 5, True)}),),
    }
    by_topic = usage(found, None, by_partition=False)
    assert [(each.broker, each.size, each.lag, each.partitions, each.future) for each in by_topic] == [
        (1, 30, 3, 2, False), (2, 7, 5, 1, True),
    ]  # fmt: skip
    assert [(each.broker, each.partition) for each in usage(found, {"t"}, by_partition=True)] == [
        (1, 1),
        (1, 0),
        (2, 0),
    ]
    assert [each["error"] for each in as_json_document(found, None)] == [None, "KAFKA_STORAGE_ERROR", None]
