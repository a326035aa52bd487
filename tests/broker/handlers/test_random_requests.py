"""Random requests: each is answered with Kafka's error codes, and a restart gives the same state."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages import api
from kohort.protocol.schema import Field, Scalar, Struct
from tests.broker.handlers.conftest import NODE, NOW, append_records, asker
from tests.protocol.everything import RandomMessages

APIS = (
    "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords", "DescribeConfigs", "AlterConfigs",
    "IncrementalAlterConfigs", "ListConfigResources", "DescribeLogDirs", "OffsetForLeaderEpoch",
    "DescribeTopicPartitions", "DescribeProducers", "ElectLeaders", "AlterPartitionReassignments",
    "ListPartitionReassignments", "AlterReplicaLogDirs", "GetTelemetrySubscriptions", "PushTelemetry",
    "WriteTxnMarkers", "DescribeCluster",
)  # fmt: skip
NAMES = ("there", "there", "there", "other", "1", "", "__consumer_offsets", "__cluster_metadata", "kohort")
SETTINGS = (
    "cleanup.policy", "retention.ms", "log.retention.ms", "metrics", "match", "interval.ms", "compression.type",
    "consumer.session.timeout.ms", "streams.num.standby.replicas", "streams.assignor.name",
    "streams.rack.aware.assignment.tags",
)  # fmt: skip
VALUES = (
    "compact",
    "compact,delete",
    "1000",
    "50000",
    "-1",
    "client_id=.*",
    "client_id=[",
    "a,*",
    "INFO",
    "zstd",
    "sticky",
)
LIKELY: dict[str, tuple[Any, ...]] = {
    "resource_type": (2, 4, 8, 16, 32),
    "config_operation": (0, 1, 2, 3),
    "election_type": (0, 1),
    "endpoint_type": (1, 2),
    "resource_name": NAMES,
    "topic": NAMES,
    "name": NAMES + SETTINGS,
    "value": VALUES,
    "partition_index": (0, 1, 2),
    "partition": (0, 1, 2),
    "replication_factor": (-1, 1),
    "num_partitions": (-1, 1, 2),
    "count": (2, 3, 4, 5),
    "offset": (-1, 0, 1, 2),
    "assignments": ([],),
}
"""What is worth trying in a field, by its name."""


class HostileMessages(RandomMessages):
    """Random messages that often name what is there, so that they come further than the first check."""

    def __init__(self, seed: str, ids: list[uuid.UUID]) -> None:
        super().__init__(seed)
        self.ids = ids

    def field(self, field: Field, message: Any, version: int) -> Any:
        if field.attr in LIKELY and self.random.random() < 0.75:
            return self.random.choice(LIKELY[field.attr])
        return super().field(field, message, version)

    def scalar(self, kind: Scalar) -> Any:
        if kind.name == "string" and self.random.random() < 0.7:
            return self.random.choice(NAMES + SETTINGS)
        if kind.name == "uuid" and self.random.random() < 0.5:
            return self.random.choice(self.ids)
        if kind.name == "int32" and self.random.random() < 0.7:
            return self.random.randrange(3)
        return super().scalar(kind)


def error_codes(struct: Struct) -> Iterator[int]:
    """All error codes in a response."""
    for field in struct.__wire_fields__:
        value = getattr(struct, field.attr)
        if field.attr.endswith("error_code"):
            yield value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                yield from error_codes(each)


def state(broker: Broker) -> dict[str, Any]:
    """Topics with their partitions, and all that was set for anything."""
    topics = {topic.name: (topic.id, len(topic.partitions)) for topic in broker.topics}
    configs = {
        f"{kind.name} {name}": broker.topics.configs(kind, name)
        for kind in ConfigResource
        for name in broker.topics.config_names(kind)
    }
    return {**topics, **configs}


async def state_after_start(broker: Broker) -> dict[str, Any]:
    await broker.start()
    try:
        return state(broker)
    finally:
        await broker.stop()


@pytest.mark.parametrize("name", APIS)
def test_any_request_is_answered_and_a_restart_comes_to_the_same(name: str, tmp_path: Path) -> None:
    draw = random.Random(name)
    request_type: type[Request] = api(name).request
    settings = Settings.of({"node.id": NODE})
    broker = Broker.build(settings, data_dir=tmp_path)
    ask = asker(broker)
    for number in range(120):
        if broker.topics.get("there") is None:
            broker.topics.create("there", 3)
            append_records(broker, "there", 0, 1)
        messages = HostileMessages(f"{name} {number}", [topic.id for topic in broker.topics])
        version = draw.choice(request_type.__message__.versions)
        response = ask(messages.message(request_type, version), version, now=NOW + number, client_id="me")
        assert ErrorCode.UNKNOWN_SERVER_ERROR not in set(error_codes(response))
    before = state(broker)
    broker.log_manager.close(broker.log_manager.logs(broker.topics))
    assert asyncio.run(state_after_start(Broker.build(settings, data_dir=tmp_path))) == before
