"""Share groups between two coordinators: answers that come later, and a share coordinator that can't write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.broker import Broker
from kohort.broker.clock import now_ms
from kohort.broker.config import Settings
from kohort.broker.context import Context
from kohort.broker.handlers import handler
from kohort.broker.reply import when_replied
from kohort.broker.session import Session
from kohort.log import Log
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Request
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.broker.handlers.conftest import ADVERTISED, done
from tests.broker.handlers.share_groups import (
    GROUP,
    alter,
    delete_offsets,
    describe_offsets,
    heartbeat,
    offsets_of,
)

SETTINGS = Settings.of(
    {"node.id": 1, "offsets.topic.num.partitions": 1, "share.coordinator.state.topic.num.partitions": 1}
)

Ask = Callable[[Request], Awaitable[Any]]


async def ask_of(broker: Broker, request: Request) -> Any:
    """The response to a request, which may come later."""
    found = handler(request.__message__.key)
    assert found is not None
    version = request.__message__.versions[-1]
    answer = asyncio.get_running_loop().create_future()
    response = found[1](request, Context(broker, version, now_ms(), "", Session(advertised=ADVERTISED)))
    when_replied(done(response), answer.set_result)
    return await asyncio.wait_for(answer, 10)


async def join(ask: Ask, *topics: str) -> int:
    response = await ask(heartbeat("m", 0, *topics))
    while response.member_epoch < 3:
        await asyncio.sleep(0.01)
        response = await ask(heartbeat("m", response.member_epoch))
    return int(response.member_epoch)


def run(directory: Path, durable: bool, test: Callable[[Broker, Ask], Awaitable[None]]) -> None:
    async def whole() -> None:
        broker = Broker.build(SETTINGS, data_dir=directory, durable=durable)
        await broker.start()
        broker.topics.create("there", 2)
        await test(broker, partial(ask_of, broker))
        await broker.stop()

    asyncio.run(whole())


@pytest.mark.parametrize("durable", [False, True])
def test_the_life_of_a_group_also_where_every_write_is_synced_first(durable: bool, tmp_path: Path) -> None:
    async def test(broker: Broker, ask: Ask) -> None:
        epoch = await join(ask, "there")
        assert (await ask(heartbeat("m", epoch))).member_epoch == epoch
        await ask(heartbeat("m", -1))
        altered = await ask(alter({"there": {1: 0}}))
        assert (altered.error_code, altered.responses[0].partitions[0].error_code) == (0, 0)
        assert offsets_of((await ask(describe_offsets())).groups[0]) == {"there": {0: (-1, -1, 0), 1: (0, 0, 0)}}
        assert [each.error_code for each in (await ask(delete_offsets("there"))).responses] == [0]
        assert (await ask(describe_offsets())).groups[0].topics == []
        assert (await ask(DeleteGroupsRequest(groups_names=(GROUP,)))).results[0].error_code == 0

    run(tmp_path, durable, test)


class Broken:
    """Has the log of the share coordinator fail, until it is mended."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.append = Log.append
        self.broken = True
        topic = broker.topics.get("__share_group_state")
        assert topic is not None
        logged = topic.partitions[0].log

        def fail(log: Log, *args: Any, **options: Any) -> Any:
            if self.broken and log is logged:
                raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
            return self.append(log, *args, **options)

        monkeypatch.setattr(Log, "append", fail)


def test_what_the_share_coordinator_can_not_write_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(broker: Broker, ask: Ask) -> None:
        broker.share_state.start()
        broken = Broken(broker, monkeypatch)
        joined = await ask(heartbeat("m", 0, "there"))
        again = await ask(heartbeat("m", joined.member_epoch))
        assert (again.error_code, again.assignment) == (ErrorCode.NONE, None)
        broken.broken = False
        await ask(heartbeat("m", joined.member_epoch))
        then = await ask(heartbeat("m", joined.member_epoch))
        assert [tuple(each.partitions) for each in then.assignment.topic_partitions] == [(0, 1)]

    run(tmp_path, False, test)


def test_a_group_whose_states_can_not_be_deleted_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(broker: Broker, ask: Ask) -> None:
        await join(ask, "there")
        await ask(heartbeat("m", -1))
        broken = Broken(broker, monkeypatch)
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR
        altered = await ask(alter({"there": {0: 0}}))
        assert [each.error_code for each in altered.responses[0].partitions] == [unknown]
        assert [each.error_code for each in (await ask(delete_offsets("there"))).responses] == [unknown]
        assert (await ask(DeleteGroupsRequest(groups_names=(GROUP,)))).results[0].error_code == unknown
        broken.broken = False
        assert [each.error_code for each in (await ask(delete_offsets("there"))).responses] == [ErrorCode.NONE]
        assert (await ask(DeleteGroupsRequest(groups_names=(GROUP,)))).results[0].error_code == ErrorCode.NONE
        assert sum(map(len, broker.share_state.active())) == 0

    run(tmp_path, False, test)
