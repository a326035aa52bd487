"""Records that are older than their topic keeps them, and an application that says so once."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kohort.client.admin import Admin, ConfigResource, ResourceType
from kohort.client.config import ClientConfig
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.spark.runtime.short_retention import ShortRetention
from kohort.testing import Broker
from tests.cli.support import invoke

CLIENT = ClientConfig(bootstrap_servers="kafka:9092", security_protocol="SSL")
NOW = 1_800_000_000_000
DAY = 86_400_000
KEEPS_A_WEEK = {"retention.ms": str(7 * DAY), "cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}


class _Cluster:
    """Settings of all topics, None if they can't be had; which were asked for."""

    def __init__(self, settings: dict[str, str] | None) -> None:
        self.settings, self.asked = settings, list[str]()
        self.configs = self

    async def describe(self, resource: ConfigResource, *, keys: Collection[str]) -> Any:
        self.asked.append(resource.name)
        if self.settings is None:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "DESCRIBE_CONFIGS")
        return {resource: {key: SimpleNamespace(value=self.settings[key]) for key in keys}} if self.settings else {}


def rows(*ages: int | None) -> pa.Table:
    return pa.table({"timestamp": pa.array([None if age is None else NOW - age for age in ages], pa.int64())})


def looked(settings: dict[str, str] | None, *tables: pa.Table, topic: str = "results") -> _Cluster:
    """Looks at what is written to a topic, batch by batch."""
    cluster = _Cluster(settings)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            retention = ShortRetention(
                "app",
                cluster,
                CLIENT,
                group.create_task,
                {"app-repartition"},
                lambda: NOW,  # type: ignore[arg-type]
            )
            for table in tables:
                retention.look(topic, table)
                retention.look(topic, table)  # before the answer is there
                await asyncio.sleep(0)

    asyncio.run(run())
    return cluster


@pytest.mark.parametrize("before", [(), (rows(2 * DAY),)])
def test_it_is_said_once(caplog: pytest.LogCaptureFixture, before: tuple[pa.Table, ...]) -> None:
    cluster = looked(KEEPS_A_WEEK, *before, rows(None, 8 * DAY, 0), rows(9 * DAY))
    assert cluster.asked == ["results"]
    assert caplog.messages == [
        "app: records of 2027-01-07T08:00:00Z are written to topic results, which deletes what is older than its "
        "retention.ms=604800000 (7 days): they may be gone within minutes. To keep them: kohort configs alter topic "
        "results -b kafka:9092 --config client.properties --set retention.ms=-1"
    ]


@pytest.mark.parametrize(
    ("settings", "topic"),
    [
        (KEEPS_A_WEEK | {"retention.ms": "-1"}, "results"),
        (KEEPS_A_WEEK | {"cleanup.policy": "compact"}, "results"),
        (KEEPS_A_WEEK | {"message.timestamp.type": "LogAppendTime"}, "results"),
        (None, "results"),
        (KEEPS_A_WEEK | {"retention.ms": "6.048e8"}, "results"),
        ({}, "results"),
        (KEEPS_A_WEEK, "app-repartition"),
    ],
)
def test_what_is_kept_or_is_not_known_is_no_warning(
    caplog: pytest.LogCaptureFixture, settings: dict[str, str] | None, topic: str
) -> None:
    caplog.set_level(logging.INFO)
    cluster = looked(settings, rows(9 * DAY), rows(10 * DAY), topic=topic)
    assert cluster.asked == (["results"] if topic == "results" else [])
    assert caplog.messages == []


@pytest.mark.parametrize("table", [rows(0, 3_600_000), rows(None), rows(), pa.table({"key": pa.array([b"k"])})])
def test_of_new_records_nothing_is_asked(table: pa.Table) -> None:
    assert looked(KEEPS_A_WEEK, table).asked == []


def test_the_command_that_is_shown_works_as_it_stands(kohort_broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    client = ClientConfig(bootstrap_servers=kohort_broker.bootstrap_servers)
    resource = ConfigResource(ResourceType.TOPIC, "results")

    async def run() -> str | None:
        async with Admin(client) as admin:
            await admin.topics.create(resource.name, configs=KEEPS_A_WEEK)
            async with asyncio.TaskGroup() as group:
                ShortRetention("app", admin, client, group.create_task, clock=lambda: NOW).look(
                    resource.name, rows(9 * DAY)
                )
            command = caplog.messages[-1].rpartition(": ")[2]
            assert (await asyncio.to_thread(invoke, *shlex.split(command)[1:])).exit_code == 0
            return (await admin.configs.describe(resource))[resource]["retention.ms"].value

    assert asyncio.run(run()) == "-1"
