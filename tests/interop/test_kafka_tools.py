"""Apache Kafka's own command line tools against a running server."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ..waiting import eventually
from .java.jvm import Finished, Tools
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]

PACKAGE = "org.apache.kafka.tools."
TOPICS = PACKAGE + "TopicCommand"
PRODUCER = PACKAGE + "ConsoleProducer"
CONSUMER = PACKAGE + "consumer.ConsoleConsumer"
GROUPS = PACKAGE + "consumer.group.ConsumerGroupCommand"
OFFSETS = PACKAGE + "GetOffsetShell"
TRANSACTIONS = PACKAGE + "TransactionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"

RunTool = Callable[..., Finished]


@pytest.fixture
def run_tool(tools: Tools, server: Server) -> RunTool:
    """Runs a tool, which must succeed, against the server."""
    return partial(tools.succeed, server.bootstrap)


def rows(done: Finished) -> list[list[str]]:
    """The cells of a table, without its head."""
    return sorted(line.split() for line in done.lines[1:])


def write_numbers(server: Server, topic: str, number: int, partitions: int = 1) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for index in range(number):
        producer.produce(topic, f"value-{index}", partition=index % partitions)
    assert producer.flush(20) == 0


def consume_and_commit(server: Server, topic: str, group: str, number: int) -> Consumer:
    """A member of a group that has read and committed so many records, and is still there."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "client.id": "reader", "enable.auto.commit": False,
        }
    )  # fmt: skip
    consumer.subscribe([topic])
    read = consumer.consume(number, timeout=20)
    assert len(read) == number
    consumer.commit(asynchronous=False)
    return consumer


def test_console_producer_and_consumer(run_tool: RunTool, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic(2)
    reader = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    typed = [f"key-{number}:value-{number}" for number in range(20)]
    run_tool(PRODUCER, "--topic", topic, "--compression-codec", "zstd", *reader, stdin="\n".join(typed))
    formatted = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]
    read = run_tool(
        CONSUMER, "--topic", topic, "--from-beginning", "--max-messages", "20", "--group", new_name(),
        "--timeout-ms", "20000", *formatted,
    )  # fmt: skip
    assert sorted(read.lines) == sorted(typed)


def test_console_consumer_reads_the_group_coordinators_records(
    run_tool: RunTool, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(), new_name()
    write_numbers(server, topic, 3)
    consume_and_commit(server, topic, group, 3).close()
    read = run_tool(
        CONSUMER, "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "8000", "--formatter",
        "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
    )  # fmt: skip
    records = [json.loads(record) for record in read.out.replace("}{", "}\n{").splitlines()]
    key = {"group": group, "topic": topic, "partition": 0}
    committed = [record["value"]["data"]["offset"] for record in records if record["key"]["data"] == key]
    assert committed == [3]


def test_topics(run_tool: RunTool, tools: Tools, server: Server, new_name: NewName) -> None:
    topic = new_name()
    run_tool(TOPICS, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=100000")
    run_tool(TOPICS, "--alter", "--topic", topic, "--partitions", "3")
    head, *partitions = run_tool(TOPICS, "--describe", "--topic", topic).lines
    assert head.startswith(f"Topic: {topic}\t")
    assert "PartitionCount: 3\tReplicationFactor: 1\t" in head
    assert "retention.ms=100000" in head
    node = partitions[0].split("Leader: ")[1].split()[0]
    assert [line.split("\t")[2:6] for line in partitions] == [
        [f"Partition: {index}", f"Leader: {node}", f"Replicas: {node}", f"Isr: {node}"] for index in range(3)
    ]
    assert topic in run_tool(TOPICS, "--list").lines
    again = tools.run(TOPICS, "--bootstrap-server", server.bootstrap, "--create", "--topic", topic)
    assert (again.code, f"Topic '{topic}' already exists." in again.out) == (1, True)
    run_tool(TOPICS, "--delete", "--topic", topic)
    eventually(lambda: topic not in run_tool(TOPICS, "--list").lines, what="the topic is gone")


def test_consumer_groups_while_a_member_is_there(
    run_tool: RunTool, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(2), new_name()
    write_numbers(server, topic, 10, partitions=2)
    consumer = consume_and_commit(server, topic, group, 10)
    write_numbers(server, topic, 3)
    try:
        offsets = rows(run_tool(GROUPS, "--describe", "--group", group))
        assert [row[:6] for row in offsets] == [[group, topic, "0", "5", "8", "3"], [group, topic, "1", "5", "5", "0"]]
        assert [row[7:] for row in offsets] == [["/127.0.0.1", "reader"]] * 2
        (state,) = rows(run_tool(GROUPS, "--describe", "--group", group, "--state"))
        assert state[0] == group and state[3:] == ["range", "Stable", "1"]
        (member,) = rows(run_tool(GROUPS, "--describe", "--group", group, "--members", "--verbose"))
        assert member[0] == group and member[2:5] == ["/127.0.0.1", "reader", "2"] and f"{topic}:0,1" in member
        assert [group, "Stable"] in rows(run_tool(GROUPS, "--list", "--state"))
        assert [group, "Classic"] in rows(run_tool(GROUPS, "--list", "--type"))
        refused = run_tool(GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
        assert "inactive, but the current state is Stable" in refused.out + refused.err
    finally:
        consumer.close()


def test_consumer_groups_of_one_that_is_empty(
    run_tool: RunTool, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(2), new_name()
    write_numbers(server, topic, 10, partitions=2)
    consume_and_commit(server, topic, group, 10).close()

    def reset(*how: str) -> list[list[str]]:
        done = run_tool(GROUPS, "--reset-offsets", "--group", group, *how)
        return [row[1:] for row in rows(done)]

    assert reset("--topic", topic, "--to-earliest", "--dry-run") == [[topic, "0", "0"], [topic, "1", "0"]]
    assert reset("--topic", f"{topic}:1", "--shift-by", "-2", "--execute") == [[topic, "1", "3"]]
    described = rows(run_tool(GROUPS, "--describe", "--group", group))
    assert [row[2:6] for row in described] == [["0", "5", "5", "0"], ["1", "3", "5", "2"]]
    assert reset("--all-topics", "--to-latest", "--execute") == [[topic, "0", "5"], [topic, "1", "5"]]
    assert reset("--topic", topic, "--to-datetime", "2020-01-01T00:00:00.000", "--execute") == [
        [topic, "0", "0"],
        [topic, "1", "0"],
    ]
    deleted = run_tool(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    assert [row[-1] for row in rows(deleted) if row[0] == topic] == ["Successful"] * 2
    assert f"('{group}') was successful" in run_tool(GROUPS, "--delete", "--group", group).out
    assert group not in run_tool(GROUPS, "--list").lines


def test_configs_of_topics(run_tool: RunTool, new_topic: NewTopic) -> None:
    entity = ["--entity-type", "topics", "--entity-name", new_topic()]
    run_tool(CONFIGS, "--alter", *entity, "--add-config", "retention.ms=100000,cleanup.policy=[compact,delete]")
    described = run_tool(CONFIGS, "--describe", *entity).out
    assert "retention.ms=100000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=100000" in described
    assert "cleanup.policy=compact,delete " in described
    run_tool(CONFIGS, "--alter", *entity, "--delete-config", "retention.ms")
    described = run_tool(CONFIGS, "--describe", *entity, "--all").out
    assert "retention.ms=604800000 sensitive=false synonyms={}" in described
    assert "cleanup.policy=compact,delete " in described


def test_configs_of_brokers(run_tool: RunTool) -> None:
    entity = ["--entity-type", "brokers", "--entity-name", "1"]
    everything = run_tool(CONFIGS, "--describe", *entity, "--all").out
    assert "offsets.retention.minutes=10080 sensitive=false" in everything
    assert "offsets.topic.num.partitions=4 sensitive=false synonyms={STATIC_BROKER_CONFIG:" in everything
    run_tool(CONFIGS, "--alter", *entity, "--add-config", "message.max.bytes=2000000")
    assert "message.max.bytes=2000000" in run_tool(CONFIGS, "--describe", *entity).out
    run_tool(CONFIGS, "--alter", *entity, "--delete-config", "message.max.bytes")


def test_get_offsets_and_delete_records(run_tool: RunTool, server: Server, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic(2)
    write_numbers(server, topic, 10, partitions=2)
    request = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 3}]}
    (tmp_path / "delete.json").write_text(json.dumps(request))
    deleted = run_tool(PACKAGE + "DeleteRecordsCommand", "--offset-json-file", str(tmp_path / "delete.json"))
    assert f"partition: {topic}-0\tlow_watermark: 3" in deleted.lines
    assert run_tool(OFFSETS, "--topic", topic, "--time", "earliest").lines == [f"{topic}:0:3", f"{topic}:1:0"]
    assert run_tool(OFFSETS, "--topic", topic).lines == [f"{topic}:0:5", f"{topic}:1:5"]
    assert run_tool(OFFSETS, "--topic", topic, "--time", "max-timestamp").code == 0


def test_an_open_transaction_listed_and_aborted(
    run_tool: RunTool, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, name = new_topic(), new_name()
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(20)
    (listed,) = (row for row in rows(run_tool(TRANSACTIONS, "list")) if row[0] == name)
    assert listed[3] == "Ongoing"
    (described,) = rows(run_tool(TRANSACTIONS, "describe", "--transactional-id", name))
    assert (described[1], described[4], described[-1]) == (name, "Ongoing", f"{topic}-0")
    (active,) = rows(run_tool(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0"))
    assert (active[0], active[3], active[5]) == (listed[2], "0", "0")
    run_tool(TRANSACTIONS, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    (active,) = rows(run_tool(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0"))
    assert active[5] == "None"
    assert not rows(run_tool(TRANSACTIONS, "find-hanging", "--topic", topic, "--partition", "0"))


def test_broker_api_versions(run_tool: RunTool) -> None:
    head, *apis = run_tool(PACKAGE + "BrokerApiVersionsCommand").lines
    assert "(id: 1 rack: null isFenced: false) -> (" in head
    offered = [line.strip() for line in apis]
    for expected in ("Fetch(1): 4 to 18 [usable: 18]", "JoinGroup(11): 0 to 9 [usable: 9]"):
        assert f"{expected}," in offered


def test_cluster_features_and_directories(run_tool: RunTool, tools: Tools, server: Server, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    cluster = tools.run(PACKAGE + "ClusterTool", "cluster-id", "--bootstrap-server", server.bootstrap)
    assert cluster.out.startswith("Cluster ID: ")
    features = run_tool(PACKAGE + "FeatureCommand", "describe").out
    assert "Feature: transaction.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 2" in features
    *_, directories = run_tool(PACKAGE + "LogDirsCommand", "--describe", "--topic-list", topic).lines
    (broker,) = json.loads(directories)["brokers"]
    (directory,) = broker["logDirs"]
    assert (directory["logDir"], directory["error"]) == (str(server.data_dir), None)
    assert {entry["partition"] for entry in directory["partitions"]} == {f"{topic}-0", f"{topic}-1"}
    assert run_tool(PACKAGE + "reassign.ReassignPartitionsCommand", "--list").lines == [
        "No partition reassignments found."
    ]
    elected = run_tool(
        PACKAGE + "LeaderElectionCommand", "--election-type", "PREFERRED", "--topic", topic, "--partition", "0"
    )
    assert f"Valid replica already elected for partitions {topic}-0" in elected.out


def test_perf_tools(run_tool: RunTool, tools: Tools, server: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    sent = tools.run(
        PACKAGE + "ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "100",
        "--throughput", "-1", "--command-property", f"bootstrap.servers={server.bootstrap}",
    )  # fmt: skip
    assert sent.code == 0, sent.err
    assert "20000 records sent" in sent.out
    read = run_tool(PACKAGE + "ConsumerPerformance", "--topic", topic, "--num-records", "20000")
    assert read.lines[-1].split(", ")[4] == "20000"


def test_offsets_committed_by_a_tool_are_where_a_consumer_starts(
    run_tool: RunTool, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(), new_name()
    write_numbers(server, topic, 10)
    run_tool(GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "7", "--execute")
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    try:
        (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
        assert committed.offset == 7
    finally:
        consumer.close()


def test_features_are_switched_off_and_on(run_tool: RunTool, tools: Tools, server: Server) -> None:
    command = PACKAGE + "FeatureCommand"
    assert "group.version was downgraded to 0." in run_tool(command, "downgrade", "--feature", "group.version=0").out
    assert "Feature: group.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\tFinalizedVersionLevel: 0" in (
        run_tool(command, "describe").out
    )
    refused = tools.run(command, "--bootstrap-server", server.bootstrap, "upgrade", "--feature", "group.version=9")
    assert refused.code != 0
    assert "its levels are 0 to 1" in refused.out + refused.err
    assert "can be upgraded to 1" in run_tool(command, "upgrade", "--feature", "group.version=1", "--dry-run").out
    assert "group.version was upgraded to 1." in run_tool(command, "upgrade", "--feature", "group.version=1").out
