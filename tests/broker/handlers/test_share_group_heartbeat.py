"""ShareGroupHeartbeat through a server: members get partitions whose states are initialized; a restart keeps all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.clock import now_ms
from kohort.broker.config import Settings
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.list_groups import ListGroupsRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.handlers.conftest import Ask, Deny, asker
from tests.broker.handlers.share_groups import GROUP, heartbeat, join, leave


def test_a_member_joins_and_gets_its_partitions_with_the_next_heartbeat(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 2).id

    joined = ask(heartbeat("m", 0, "there"))
    assert (joined.error_code, joined.member_epoch, joined.assignment.topic_partitions) == (ErrorCode.NONE, 2, [])
    assert joined.heartbeat_interval_ms == 500
    then = ask(heartbeat("m", 2))

    assert (then.member_epoch, then.heartbeat_interval_ms) == (3, 500)
    (topic,) = then.assignment.topic_partitions
    assert (topic.topic_id, tuple(topic.partitions)) == (topic_id, (0, 1))


@pytest.mark.parametrize("settings", [{"group.share.assignment.interval.ms": 0}])
def test_topics_that_come_and_grow_are_seen_without_a_wait(broker: Broker) -> None:
    async def run() -> None:
        ask = asker(broker)
        epoch = join(ask, "m", "there")
        broker.topics.create("there", 1)
        await asyncio.sleep(0)
        first = ask(heartbeat("m", epoch))
        broker.topics.add_partitions("there", 3)
        await asyncio.sleep(0)
        second = ask(heartbeat("m", first.member_epoch))
        third = ask(heartbeat("m", second.member_epoch))
        assert [tuple(each.partitions) for each in third.assignment.topic_partitions] == [(0, 1, 2)]

    asyncio.run(run())


def test_that_a_member_was_fenced_is_told_but_not_that_it_left(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    fenced: list[tuple[str, str]] = []
    broker.groups.on_share_member_fenced.append(lambda group_id, member_id: fenced.append((group_id, member_id)))
    join(ask, "m", "there")
    leave(ask)
    assert fenced == []
    join(ask, "n", "there")

    broker.wheel.advance(now_ms() + 46_000)
    broker.groups.drain()

    assert fenced == [(GROUP, "n")]


def test_groups_have_settings_of_their_own(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    epoch = join(ask, "m", "there")

    broker.topics.set_configs(ConfigResource.GROUP, GROUP, {"share.moving.heartbeat.interval.ms": "300"})

    assert ask(heartbeat("m", epoch)).heartbeat_interval_ms == 300


def test_groups_are_listed_and_of_one_kind(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    join(ask, "m", "there")

    listed = ask(ListGroupsRequest(types_filter=("share",))).groups
    assert [(each.group_id, each.group_type, each.group_state, each.protocol_type) for each in listed] == [
        (GROUP, "share", "Stable", "share")
    ]
    assert ask(ListGroupsRequest(types_filter=("classic",))).groups == []
    classic = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )
    assert ask(classic, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    fetched = ask(OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=GROUP, topics=None)]))
    assert (fetched.groups[0].error_code, fetched.groups[0].topics) == (ErrorCode.NONE, [])


def test_a_classic_group_is_not_joined(ask: Ask) -> None:
    classic = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )
    assert ask(classic, 3).error_code == ErrorCode.NONE

    assert ask(heartbeat("m", 0, "there")).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_who_may_not(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "secret")
    assert ask(heartbeat("m", 0, "open", "secret")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    deny(Operation.READ, ResourceType.GROUP, GROUP)
    assert ask(heartbeat("m", 0, "open")).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize("member_id", ["", "m" * 37])
def test_member_ids_of_a_wrong_length(member_id: str, ask: Ask) -> None:
    assert ask(heartbeat(member_id, 0, "there")).error_code == ErrorCode.INVALID_REQUEST


def test_where_share_groups_are_off(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupCoordinator, "offered", lambda self, kind: kind != "share")

    assert ask(heartbeat("m", 0, "there")).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_restart_keeps_members_assignment_and_states(tmp_path: Path) -> None:
    settings = Settings.of({"node.id": 1, "offsets.topic.num.partitions": 2})

    async def first_run() -> int:
        broker = Broker.build(settings, data_dir=tmp_path)
        await broker.start()
        broker.topics.create("there", 2)
        epoch = join(asker(broker), "m", "there")
        await broker.stop()
        return epoch

    async def second_run(epoch: int) -> None:
        broker = Broker.build(settings, data_dir=tmp_path)
        await broker.start()
        while any(coordinator.loading() for coordinator in broker.coordinators):
            await asyncio.sleep(0)
        ask = asker(broker)
        assert ask(heartbeat("m", epoch)).member_epoch == epoch
        (topic,) = ask(heartbeat("m", 0, "there")).assignment.topic_partitions
        assert tuple(topic.partitions) == (0, 1)
        await broker.stop()

    asyncio.run(second_run(asyncio.run(first_run())))
