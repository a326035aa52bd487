"""Apache Kafka's tools of who runs a cluster: reassignments, the quorum, features, client metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ..waiting import eventually
from .java.jvm import Finished, Tools
from .servers import KohortServer, Server

PACKAGE = "org.apache.kafka.tools."
REASSIGN = PACKAGE + "reassign.ReassignPartitionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"

RunTool = Callable[..., Finished]


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose features and configuration these tests change."""
    server = KohortServer(tmp_path_factory.mktemp("operated"), {"node.id": "7"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def run_tool(tools: Tools, operated: Server) -> RunTool:
    """Runs a tool, which must succeed, against the server."""
    return partial(tools.succeed, operated.bootstrap)


@pytest.mark.long
def test_partitions_are_reassigned_with_a_throttle(run_tool: RunTool, operated: Server, tmp_path: Path) -> None:
    run_tool(PACKAGE + "TopicCommand", "--create", "--topic", "moved", "--partitions", "2")
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": "moved", "partition": index, "replicas": [7], "log_dirs": [str(operated.data_dir)]}
        for index in range(2)
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    reassign = partial(run_tool, REASSIGN, "--reassignment-json-file", str(plan))
    begun = reassign("--execute", "--throttle", "1000000", "--replica-alter-log-dirs-throttle", "2000000").out
    assert "Successfully started partition reassignments for moved-0,moved-1" in begun
    described = run_tool(CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "7").out
    for key, rate in (
        ("leader.replication.throttled.rate", 1000000),
        ("follower.replication.throttled.rate", 1000000),
        ("replica.alter.log.dirs.io.max.bytes.per.second", 2000000),
    ):
        assert f"{key}={rate} sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{key}={rate}}}" in described
    verified = reassign("--verify").out
    assert "Reassignment of partition moved-0 is completed." in verified
    assert "Clearing broker-level throttles on broker 7" in verified
    assert "Clearing topic-level throttles on topic moved" in verified
    described = run_tool(CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "7").out
    assert "throttled" not in described


QUORUM = PACKAGE + "MetadataQuorumCommand"


def test_the_quorum_is_one_voter(run_tool: RunTool) -> None:
    status = dict(line.split(":", 1) for line in run_tool(QUORUM, "describe", "--status").lines)
    found = {key: status[key].strip() for key in ("LeaderId", "LeaderEpoch", "MaxFollowerLag", "CurrentObservers")}
    assert found == {"LeaderId": "7", "LeaderEpoch": "0", "MaxFollowerLag": "0", "CurrentObservers": "[]"}
    (voter,) = json.loads(status["CurrentVoters"])
    assert voter["id"] == 7
    head, row = run_tool(QUORUM, "describe", "--replication").lines
    node, directory, end, lag, *_, role = row.split()
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert (node, directory, lag, role) == ("7", voter["directoryId"], "0", "Leader")
    assert int(end) >= int(status["HighWatermark"]) > 0


FEATURES = PACKAGE + "FeatureCommand"


def levels(run_tool: RunTool) -> dict[str, str]:
    """The finalized level of each feature."""
    lines = (line.split("\t") for line in run_tool(FEATURES, "describe").lines)
    return {cells[0].removeprefix("Feature: "): cells[3].removeprefix("FinalizedVersionLevel: ") for cells in lines}


def test_features_go_down_and_up(run_tool: RunTool, tools: Tools, operated: Server) -> None:
    assert levels(run_tool)["metadata.version"] == "4.3-IV0"
    assert "can be disabled" in run_tool(FEATURES, "disable", "--feature", "share.version", "--dry-run").out
    run_tool(FEATURES, "disable", "--feature", "share.version")
    run_tool(FEATURES, "downgrade", "--feature", "streams.version=0")
    off = levels(run_tool)
    assert (off["share.version"], off["streams.version"], off["group.version"]) == ("0", "0", "1")
    run_tool(FEATURES, "upgrade", "--feature", "share.version=1", "--feature", "streams.version=1")
    on = levels(run_tool)
    assert (on["share.version"], on["streams.version"]) == ("1", "1")
    for change, reason in (
        (("downgrade", "--release-version", "4.2"), "not even an unsafe downgrade"),
        (("downgrade", "--feature", "metadata.version=29", "--unsafe"), "not even an unsafe downgrade"),
        (("disable", "--feature", "metadata.version"), "its levels are 7 to 30"),
        (("upgrade", "--release-version", "3.9"), "the request is an upgrade"),
    ):
        refused = tools.run(FEATURES, "--bootstrap-server", operated.bootstrap, *change)
        assert (refused.code, reason in refused.out) == (1, True), refused
    assert levels(run_tool) == on


METRICS = PACKAGE + "ClientMetricsCommand"


class Said(logging.Handler):
    """What a client logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def said_by_a_producer(bootstrap: str, *, until: Callable[[list[str]], bool]) -> list[str]:
    """What librdkafka logs when it connects, writes a record, and goes on until enough is said."""
    logger, said = logging.Logger("librdkafka"), Said()
    logger.addHandler(said)
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "told"}, logger=logger)
    producer.produce("told", b"value")
    assert producer.flush(20) == 0
    producer.list_topics(timeout=20)  # what it asks when it connects is answered before this

    def enough() -> bool:
        producer.poll(0)
        return until(said.lines)

    eventually(enough, what="the producer says enough")
    return said.lines


def test_clients_say_nothing_of_metrics_that_nobody_wants(run_tool: RunTool, operated: Server) -> None:
    run_tool(PACKAGE + "TopicCommand", "--create", "--topic", "told")
    assert said_by_a_producer(operated.bootstrap, until=lambda lines: True) == []
    run_tool(METRICS, "--alter", "--name", "all", "--metrics", "org.apache.kafka", "--interval", "1000")
    told = said_by_a_producer(operated.bootstrap, until=lambda lines: any("Telemetry" in line for line in lines))
    assert "Telemetry client instance id changed" in told[0]
    run_tool(METRICS, "--delete", "--name", "all")
    assert said_by_a_producer(operated.bootstrap, until=lambda lines: True) == []


def test_thread_counts_are_set_step_by_step(run_tool: RunTool, tools: Tools, operated: Server) -> None:
    brokers = ("--entity-type", "brokers", "--entity-default")
    run_tool(CONFIGS, "--alter", *brokers, "--add-config", "num.io.threads=16,background.threads=5")
    described = run_tool(CONFIGS, "--describe", *brokers).out
    assert "num.io.threads=16 sensitive=false" in described
    assert "background.threads=5 sensitive=false" in described
    refused = tools.run(
        CONFIGS, "--bootstrap-server", operated.bootstrap, "--alter", *brokers, "--add-config", "num.io.threads=33"
    )
    assert (refused.code, "at most double the current 16" in refused.out + refused.err) == (1, True)
    run_tool(CONFIGS, "--alter", *brokers, "--delete-config", "num.io.threads,background.threads")


def test_a_groups_value_stands_above_the_brokers(run_tool: RunTool) -> None:
    group = ("--entity-type", "groups", "--entity-name", "described")
    run_tool(CONFIGS, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert (
        "consumer.session.timeout.ms=50000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:"
        "consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}"
    ) in run_tool(CONFIGS, "--describe", *group).out
