from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from io import StringIO
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from rich.console import Console

from kohort.cli.demo.group import GroupView, all_read
from kohort.cli.demo.results import read_groups
from kohort.client import Admin, Producer, TopicPartition
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import (
    GroupDescription,
    GroupMember,
    GroupType,
    StreamsMemberState,
)
from kohort.client.types import Broker as BrokerInfo
from kohort.streams.tasks import Role, TaskId
from kohort.testing import Broker

ONE = ("127.0.0.1", 1)


def member(tasks: Mapping[TaskId, Role], target: Mapping[TaskId, Role] | None = None) -> GroupMember:
    streams = StreamsMemberState(
        process_id="p", endpoint=ONE, tags={}, topology_epoch=0, tasks=tasks, target_tasks=target or tasks,
        task_offsets={}, task_end_offsets={},
    )  # fmt: skip
    return GroupMember(
        member_id="m", instance_id=None, client_id="", host="", rack=None, epoch=3, classic=False, topics=(),
        pattern=None, partitions=(), target=None, streams=streams,
    )  # fmt: skip


def view(*members: GroupMember, state: str = "Stable", **lags: tuple[int | None, int]) -> GroupView:
    group = GroupDescription(
        group_id="flight-delays", type=GroupType.STREAMS, state=state, coordinator=BrokerInfo(1, "h", 9092, None),
        members=members, assignor="", protocol_type="", assignment_epoch=3, epoch=3,
    )  # fmt: skip
    lag = {
        TopicPartition(*_partition(name)): PartitionLag(done, end, None if done is None else end - done, -1, "")
        for name, (done, end) in lags.items()
    }
    return GroupView(group, lag, {ONE: "instance-1"})


def _partition(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("_")
    return topic, int(number)


def test_what_isnt_committed_yet_is_all_to_do() -> None:
    seen = view(flights_0=(30, 100), flights_1=(None, 50), airlines_0=(4, 4))
    assert (seen.behind("flights"), seen.done("flights"), seen.behind("airlines")) == (120, 30, 0)


def test_a_group_is_settled_when_all_have_what_they_shall_have() -> None:
    two, four = ({TaskId("0", number): Role.ACTIVE for number in range(count)} for count in (2, 4))
    assert view(member(two)).reconciled
    assert not view(member(two, four)).reconciled
    assert not view(member({})).reconciled
    assert not view().reconciled
    assert not view(member(two), state="Assigning").reconciled  # the target is still the one from before


def test_shows_an_instance_by_its_name() -> None:
    console = Console(file=StringIO(), width=120)
    tasks = {TaskId("0", 0): Role.ACTIVE, TaskId("0", 1): Role.ACTIVE, TaskId("1", 2): Role.STANDBY}
    console.print(view(member(tasks), flights_0=(0, 1234)).shown())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "stable, epoch 3, 1,234 flights to go" in text
    assert text.split("instance-1")[1].split()[:4] == ["0:", "0-1", "1:", "2"]


async def write(servers: str, topic: str, rows: list[dict[str, Any]], *, commit: bool) -> None:
    """Rows in a transaction, which leaves a marker behind them."""
    table = pa.table({"key": [row["sky"] for row in rows], "value": [json.dumps(row) for row in rows]})
    async with Producer(servers, transactional_id=str(uuid4())) as producer:
        await producer.begin_transaction()
        await (await producer.send_table(topic, table))
        await (producer.commit_transaction() if commit else producer.abort_transaction())


@pytest.fixture
def topic(kohort_broker: Broker) -> str:
    name = f"delays-{uuid4()}"

    async def create() -> None:
        async with Admin(kohort_broker.bootstrap_servers) as admin:
            await admin.topics.create(name, partitions=2)

    asyncio.run(create())
    return name


def test_reads_the_last_committed_value_of_each_key(kohort_broker: Broker, topic: str) -> None:
    async def main() -> dict[tuple[str, ...], dict[str, Any]]:
        servers = kohort_broker.bootstrap_servers
        await write(servers, topic, [{"sky": "calm", "n": 1}, {"sky": "snow", "n": 1}], commit=True)
        await write(servers, topic, [{"sky": "calm", "n": 2}], commit=True)
        await write(servers, topic, [{"sky": "calm", "n": 99}, {"sky": "fog", "n": 99}], commit=False)
        return await read_groups(servers, topic, ("sky",))

    assert asyncio.run(main()) == {("calm",): {"sky": "calm", "n": 2}, ("snow",): {"sky": "snow", "n": 1}}


def test_markers_of_transactions_are_nothing_to_read(kohort_broker: Broker, topic: str) -> None:
    async def main() -> tuple[bool, bool]:
        servers = kohort_broker.bootstrap_servers
        await write(servers, topic, [{"sky": "calm", "n": 1}], commit=True)
        async with Admin(servers) as admin:
            ends = await admin.offsets.ends([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        full = {at: end for at, (_, end) in ends.items() if end}
        at_marker = {at: PartitionLag(end - 1, end, 1, -1, "") for at, end in full.items()}
        at_record = {at: PartitionLag(None, end, None, -1, "") for at, end in full.items()}
        one, other = view(), view()
        return (
            await all_read(servers, GroupView(one.group, at_marker, {})),
            await all_read(servers, GroupView(other.group, at_record, {})),
        )

    assert asyncio.run(main()) == (True, False)
