"""The lag of many groups at once is that of each."""

from __future__ import annotations

from kohort.client.admin import Admin, ConfigResource, GroupType, ResourceType
from kohort.client.share_consumer import ShareConsumer
from kohort.client.types import TopicPartition
from kohort.testing.broker import Broker
from tests.client.administration.members import join_streams, open_transaction, write_at
from tests.waiting import run

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_groups_of_every_type_have_the_lag_that_each_has_alone() -> None:
    async def whole() -> None:
        async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
            servers = broker.bootstrap_servers
            await admin.topics.create("t", partitions=2)
            await write_at(servers, T0, [1, 2, 3, 4])
            await admin.group_offsets.alter("classic", {T0: 1})
            await join_streams(servers, "app", "t")
            await admin.configs.alter(
                ConfigResource(ResourceType.GROUP, "workers"), set={"share.auto.offset.reset": "earliest"}
            )
            async with ShareConsumer(servers, group_id="workers") as consumer:
                consumer.subscribe("t")
                while not await consumer.poll():
                    pass
                await open_transaction(servers, "open", T0)
                types = {each.group_id: each.type for each in await admin.groups.list()}
                assert set(types.values()) == {GroupType.CLASSIC, GroupType.STREAMS, GroupType.SHARE}
                found = await admin.group_offsets.lag_of_groups(
                    types | {"gone": GroupType.CLASSIC, "odd": GroupType.UNKNOWN}, partitions={"app": [T0, T1]}
                )
                for name in ("classic", "workers"):
                    assert found[name] == await admin.group_offsets.lag(name)
                assert found["app"] == await admin.group_offsets.lag(
                    "app", partitions=[T0, T1], isolation_level="read_committed"
                )
                assert (found["classic"][T0].lag, found["app"][T0].end) == (4, 4)  # an open transaction's record
                assert found["workers"][T0].in_flight
                assert (found["app"][T1].committed, found["app"][T1].lag) == (None, 0)  # nothing is to be read
                assert "odd" not in found

    run(whole())


def test_groups_are_described_without_asking_for_their_types() -> None:
    async def whole() -> None:
        async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
            await admin.topics.create("t", partitions=2)
            await admin.group_offsets.alter("classic", {T0: 0})
            await join_streams(broker.bootstrap_servers, "app", "t")
            types = {each.group_id: each.type for each in await admin.groups.list()}
            assert await admin.groups.describe(*types, types=types) == await admin.groups.describe(*types)

    run(whole())
