"""The admin client against a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kohort.client.admin import (
    Admin,
    ConfigResource,
    ConfigSource,
    GroupType,
    NewTopic,
    OffsetSpec,
    PartialFailureError,
    ResetError,
    ResetTo,
    ResourceType,
)
from kohort.client.errors import ClientError, ConfigError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.streams.tasks import Role, TaskId
from kohort.testing.broker import Broker
from tests.client.administration.members import join_classic, join_streams, open_transaction, write_at
from tests.waiting import run

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MINUTE = 60_000


def against_a_broker(test: Callable[[Admin, str], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Broker() as broker, Admin(broker.bootstrap_servers, default_api_timeout_ms=10_000) as admin:
            await test(admin, broker.bootstrap_servers)

    run(whole())


def code_of(failed: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return failed.value.code


def test_topics_come_change_and_go() -> None:
    async def test(admin: Admin, servers: str) -> None:
        created = await admin.topics.create("t", partitions=2, configs={"retention.ms": "3600000"})
        assert created["t"][2:] == (2, 1)
        checked = await admin.topics.create(
            NewTopic("u", replica_assignments={0: [1], 1: [1], 2: [1]}), validate_only=True
        )
        assert checked["u"].partitions == 3
        assert [*await admin.topics.list()] == ["t"]
        await admin.topics.add_partitions("t", 3)
        described = (await admin.topics.describe("t"))["t"]
        assert [*described.partitions] == [0, 1, 2]
        assert described.partitions[2].leader == 1
        assert described.topic_id == created["t"].topic_id
        assert await admin.topics.partitions(["t"]) == tuple(TopicPartition("t", number) for number in range(3))
        with pytest.raises(KafkaError) as failed:
            await admin.topics.create("t")
        assert code_of(failed) is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(KafkaError) as failed:
            await admin.topics.add_partitions("t", 1)
        assert code_of(failed) is ErrorCode.INVALID_PARTITIONS
        await admin.topics.create("u", "v")
        assert created["t"].topic_id is not None
        await admin.topics.delete(created["t"].topic_id, "u")
        assert [*await admin.topics.list()] == ["v"]
        with pytest.raises(PartialFailureError, match=r"1 of 2 failed: u: .*there is no topic u"):
            await admin.topics.describe("v", "u")

    against_a_broker(test)


def test_a_topic_that_contradicts_itself_is_not_sent() -> None:
    with pytest.raises(ValueError, match="leave these out"):
        NewTopic("t", partitions=2, replica_assignments={0: [1]})


def test_records_are_found_by_end_and_by_time_and_deleted() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t", partitions=2)
        await write_at(servers, T0, [1000, 3000, 2000])
        wanted = {T0: OffsetSpec.LATEST, T1: OffsetSpec.EARLIEST}
        found = await admin.offsets.list(wanted)
        assert (found[T0].offset, found[T1].offset) == (3, 0)
        assert (await admin.offsets.list({T0: OffsetSpec.MAX_TIMESTAMP}))[T0][:2] == (1, 3000)
        by_time = await admin.offsets.list({T0: 2500, T1: 2500}, isolation_level="read_committed")
        assert (by_time[T0].offset, by_time[T1].offset) == (1, -1)
        assert await admin.topics.delete_records({T0: 2}) == {T0: 2}
        assert await admin.topics.delete_records({T0: -1}) == {T0: 3}
        assert await admin.offsets.ends([T0, T1]) == {T0: (3, 3), T1: (0, 0)}
        with pytest.raises(KafkaError, match="t has 2 partitions, from 0"):
            await admin.offsets.list({TopicPartition("t", 7): OffsetSpec.LATEST}, timeout_ms=100)
        with pytest.raises(ConfigError, match="read_uncommitted, read_committed"):
            await admin.offsets.list(wanted, isolation_level="dirty")

    against_a_broker(test)


def test_settings_are_described_and_altered() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t")
        topic, group = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.GROUP, "app")
        broker = ConfigResource(ResourceType.BROKER, "1")
        keys = ["cleanup.policy", "retention.ms"]
        await admin.configs.alter(topic, set={"retention.ms": "1000"}, append={"cleanup.policy": "compact"})
        entries = (await admin.configs.describe(topic, keys=keys, synonyms=True, documentation=True))[topic]
        assert {key: entry.value for key, entry in entries.items()} == {
            "cleanup.policy": "delete,compact", "retention.ms": "1000",
        }  # fmt: skip
        assert entries["retention.ms"].source is ConfigSource.TOPIC
        assert not entries["retention.ms"].default
        assert entries["retention.ms"].synonyms[0].source is ConfigSource.TOPIC
        assert entries["retention.ms"].documentation
        await admin.configs.alter(topic, delete=["retention.ms"], subtract={"cleanup.policy": "delete"})
        entries = (await admin.configs.describe(topic, keys=keys))[topic]
        assert (entries["cleanup.policy"].value, entries["retention.ms"].default) == ("compact", True)
        with pytest.raises(KafkaError) as failed:
            await admin.configs.alter(topic, set={"nope": "1"}, validate_only=True)
        assert code_of(failed) is ErrorCode.INVALID_CONFIG
        await admin.configs.alter(group, set={"streams.num.standby.replicas": "1"})
        described = await admin.configs.describe(group, broker)
        assert described[group]["streams.num.standby.replicas"].source is ConfigSource.GROUP
        assert "log.retention.hours" in described[broker]
        assert topic in await admin.configs.list(ResourceType.TOPIC)

    against_a_broker(test)


def test_a_classic_groups_life() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t", partitions=2)
        await write_at(servers, T0, [1000] * 10)
        member = await join_classic(servers, "g", T0)
        group = (await admin.groups.describe("g"))["g"]
        assert (group.type, group.state, group.assignor) == (GroupType.CLASSIC, "Stable", "range")
        assert {at: [each.member_id for each in who] for at, who in group.owners().items()} == {T0: [member]}
        assert [each[:4] for each in await admin.groups.list(types=["classic"], states=["stable"])] == [
            ("g", GroupType.CLASSIC, "Stable", "consumer")
        ]
        for refused in (
            admin.groups.delete("g"),
            admin.group_offsets.reset("g", ResetTo.earliest(), topics=["t"], dry_run=False),
        ):
            with pytest.raises(KafkaError) as failed:
                await refused
            assert code_of(failed) is ErrorCode.NON_EMPTY_GROUP
        assert [each.member_id for each in await admin.groups.remove_members("g")] == [member]
        assert await admin.groups.remove_members("g") == ()
        await admin.group_offsets.alter("g", {T0: OffsetAndMetadata(4, 0, "note"), T1: 0})
        assert await admin.group_offsets.committed("g") == {
            T0: OffsetAndMetadata(4, 0, "note"), T1: OffsetAndMetadata(0),
        }  # fmt: skip
        lag = await admin.group_offsets.lag("g", partitions=[TopicPartition("gone", 0)])
        assert lag[T0][:3] == (4, 10, 6)
        assert lag[TopicPartition("gone", 0)][:3] == (None, None, None)
        await admin.group_offsets.delete("g", [T1])
        assert [*await admin.group_offsets.committed("g")] == [T0]
        lag = (await admin.group_offsets.lag("g", partitions=[T1]))[T1]
        assert (lag.committed, lag.end, lag.lag, lag.uncommitted) == (None, 0, 0, 0)  # nothing is to be read
        await write_at(servers, T1, [1000] * 3)
        await admin.topics.delete_records({T1: 1})
        lag = (await admin.group_offsets.lag("g", partitions=[T1]))[T1]
        assert (lag.committed, lag.end, lag.lag, lag.uncommitted) == (None, 3, None, 2)
        await admin.groups.delete("g")
        assert await admin.groups.list() == []
        with pytest.raises(KafkaError) as failed:
            await admin.group_offsets.committed("g")
        assert code_of(failed) is ErrorCode.GROUP_ID_NOT_FOUND

    against_a_broker(test)


def test_a_streams_group_is_described_with_its_tasks() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t", partitions=2)
        member_id = await join_streams(servers, "app", "t")
        assert [group.type for group in await admin.groups.list()] == [GroupType.STREAMS]
        group = (await admin.groups.describe("app"))["app"]
        (member,) = group.members
        assert member.member_id == member_id
        assert member.streams is not None
        assert member.streams.tasks == {TaskId("0", 0): Role.ACTIVE, TaskId("0", 1): Role.ACTIVE}
        assert member.streams.endpoint == ("here", 80)
        assert group.epoch == group.assignment_epoch == member.epoch
        assert [*group.owners()] == [T0, T1]
        assert group.topology is not None
        assert [topic.name for topic in group.topology.subtopologies["0"].changelogs] == ["app-store-changelog"]
        await admin.groups.remove_members("app")
        await admin.group_offsets.reset("app", ResetTo.offset(0), topics=["t"], dry_run=False)
        assert [*await admin.group_offsets.committed("app")] == [T0, T1]

    against_a_broker(test)


def test_offsets_are_reset() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t", partitions=2)
        await write_at(servers, T0, [MINUTE, 2 * MINUTE, 3 * MINUTE])
        reset = admin.group_offsets.reset
        with pytest.raises(KafkaError) as failed:
            await reset("g", ResetTo.earliest())
        assert code_of(failed) is ErrorCode.GROUP_ID_NOT_FOUND
        planned = await reset("g", ResetTo.latest(), topics=["t"])
        assert {at: each.after for at, each in planned.items()} == {T0: 3, T1: 0}
        assert await admin.groups.list() == []  # it was only worked out
        await reset("g", ResetTo.latest(), topics=["t"], dry_run=False)
        assert (await reset("g", ResetTo.shift(-1), partitions=[T0], dry_run=False))[T0][:2] == (3, 2)
        planned = await reset("g", ResetTo.time(2 * MINUTE), dry_run=False)
        assert {at: each[:2] for at, each in planned.items()} == {T0: (2, 1), T1: (0, 0)}
        assert (await admin.group_offsets.committed("g"))[T0].offset == 1
        assert await reset("g", ResetTo.to_offsets({T0: 2}), dry_run=False) == {T0: (1, 2, "", 1)}
        with pytest.raises(ResetError, match="other-0: nothing is committed"):
            await admin.topics.create("other")
            await reset("g", ResetTo.shift(1), topics=["other"])
        with pytest.raises(ValueError, match="leave out topics"):
            await reset("g", ResetTo.to_offsets({T0: 2}), topics=["t"])
        with pytest.raises(KafkaError) as failed:
            await reset("g", ResetTo.earliest(), topics=["nope"])
        assert code_of(failed) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    against_a_broker(test)


def test_transactions_are_listed_described_and_fenced() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t")
        assert await admin.transactions.list() == []
        await admin.transactions.fence("tx")
        (listed,) = await admin.transactions.list(states=["Empty"], pattern="t.*", running_longer_than_ms=None)
        assert (listed.transactional_id, listed.state) == ("tx", "Empty")
        described = (await admin.transactions.describe("tx"))["tx"]
        assert (described.producer_id, described.start_ms, described.partitions) == (listed.producer_id, None, ())
        with pytest.raises(KafkaError) as failed:
            await admin.transactions.describe("nope")
        assert code_of(failed) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert await admin.transactions.producers(T0) == {T0: ()}

    against_a_broker(test)


def test_a_transaction_that_hangs_is_found_and_aborted() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t")
        await open_transaction(servers, "tx", T0)
        (listed,) = await admin.transactions.list(states=["Ongoing"], producer_ids=[0])
        assert (await admin.transactions.describe("tx"))["tx"].partitions == (T0,)
        (producer,) = (await admin.transactions.producers(T0))[T0]
        assert (producer.producer_id, producer.transaction_start) == (listed.producer_id, 0)
        assert await admin.offsets.ends([T0], isolation_level="read_committed") == {T0: (0, 0)}
        await admin.transactions.abort(T0, producer)
        assert await admin.offsets.ends([T0], isolation_level="read_committed") == {T0: (0, 2)}
        (producer,) = (await admin.transactions.producers(T0))[T0]
        with pytest.raises(ValueError, match="no open transaction"):
            await admin.transactions.abort(T0, producer)

    against_a_broker(test)


def test_the_cluster_is_described() -> None:
    async def test(admin: Admin, servers: str) -> None:
        await admin.topics.create("t")
        described = await admin.cluster.describe()
        assert [f"{broker.host}:{broker.port}" for broker in described.brokers] == [servers]
        assert described.controller == 1
        features = await admin.cluster.features()
        assert features.finalized["streams.version"] == 1
        assert features.supported["streams.version"] == (0, 1)
        (directory,) = (await admin.cluster.log_dirs())[1]
        assert T0 in directory.replicas
        with pytest.raises(ClientError, match="there is no broker 77"):
            await admin.cluster.log_dirs([77])
        quorum = await admin.cluster.quorum()
        assert (quorum.leader, [voter.node_id for voter in quorum.voters], quorum.observers) == (1, [1], ())

    against_a_broker(test)
