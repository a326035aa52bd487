from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from kohort.client.errors import CommitFailedError, FencedError, UnsupportedError
from kohort.client.membership.member_states import State
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.testing.broker import Broker
from tests.client.membership.members import Recorder, create_topics, joined, member, partitions
from tests.client.support.scripted_broker import ScriptedBroker
from tests.waiting import run, until

LOGGER = "kohort.client.coordinator_connector"
STRATEGIES = [("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",), ("range", "cooperative-sticky")]


@pytest.mark.parametrize("strategy", STRATEGIES, ids="+".join)
def test_members_come_and_go(strategy: tuple[str, ...]) -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t=4)
            async with member(servers, "t", partition_assignment_strategy=strategy) as one:
                await until(lambda: joined(one))
                async with member(servers, "t", partition_assignment_strategy=strategy) as two:
                    await until(lambda: joined(one, two))
                    assert len(one.assigned) == len(two.assigned) == 2
                    assert one.connector.group_metadata().generation > 0
                await until(lambda: joined(one))
            assert not one.errors and not two.errors
            assert one.assigned == two.assigned == frozenset()
            # Cooperative members give up only what moves; eager ones everything.
            assert one.connector.state is State.UNSUBSCRIBED

    run(test())


def test_start_up_is_quick() -> None:
    async def test() -> float:
        async with Broker() as broker:
            await create_topics(broker.bootstrap_servers, t=4)
            begin = time.monotonic()
            async with member(broker.bootstrap_servers, "t") as one:
                await until(lambda: joined(one))
                return time.monotonic() - begin

    # The quickest of three: the machine may be busy.
    assert min(run(test()) for _ in range(3)) < 1


def test_offsets() -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t=4)
            at = TopicPartition("t", 1)
            async with member(servers, "t") as one:
                await until(lambda: joined(one))
                assert await one.connector.committed([at]) == {at: None}
                assert await one.connector.commit({at: OffsetAndMetadata(5, 0, "note")}) == {}
                assert await one.connector.committed([at]) == {at: OffsetAndMetadata(5, 0, "note")}
                elsewhere = {TopicPartition("t", 9): OffsetAndMetadata(1)}
                with pytest.raises(CommitFailedError, match="max_poll_interval_ms"):
                    await one.connector.commit(elsewhere)
            # Nobody is in the group now.
            async with member(servers) as outsider:
                assert await outsider.connector.commit({at: OffsetAndMetadata(7)}) == {}
                assert (await outsider.connector.committed([at]))[at] == OffsetAndMetadata(7)
                assert outsider.connector.group_metadata().generation == -1

    run(test())


def test_pattern_and_new_topics() -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t1=1, other=1)
            async with member(servers, pattern="t[0-9]") as one:
                await until(lambda: one.assigned == partitions("t1", 0))
                await create_topics(servers, t2=2)
                await one.connector._cluster.refresh()
                await until(lambda: one.assigned == partitions("t1", 0) | partitions("t2", 0, 1))

    run(test())


def test_subscription_changes_and_ends() -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, a=1, b=1)
            for strategy in ("range", "cooperative-sticky"):
                async with member(servers, "a", "b", partition_assignment_strategy=(strategy,), group=strategy) as one:
                    await until(lambda one=one: len(one.assigned) == 2)
                    for topics in ({"a"}, {"b"}, {"a", "b"}, set(), {"b"}):
                        one.subscription = type(one.subscription)(frozenset(topics))
                        one.connector.subscription_changed()
                        expected = frozenset().union(*(partitions(topic, 0) for topic in topics))
                        await until(lambda one=one, expected=expected: one.assigned == expected)

    run(test())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_slow_user_exceeds_the_poll_interval_and_comes_back(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kohort")

    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t=4)
            async with member(servers, "t", max_poll_interval_ms=300, group_protocol=protocol) as one:
                await until(lambda: joined(one))
                one.polled_at = one.last_poll()
                await until(lambda: one.connector.state is State.STALE)
                await until(lambda: not one.assigned)
                assert one.calls[-1] == "lose"
                logged = [each for each in caplog.records if each.name == LOGGER]
                warnings = [each.getMessage() for each in logged if each.levelno == logging.WARNING]
                assert len(warnings) == 1 and "longer than max_poll_interval_ms=300" in warnings[0]
                one.polled_at = None
                one.connector.polled()
                await until(lambda: joined(one))

    run(test())
    assert "MEMBER_ID_REQUIRED" not in caplog.text


def test_static_members() -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t=4)
            async with member(servers, "t", group_instance_id="i") as one:
                await until(lambda: joined(one))
                generation = one.connector.group_metadata().generation
            async with member(servers, "t", group_instance_id="i") as again:
                await until(lambda: joined(again))
                assert again.connector.group_metadata().generation == generation
                async with member(servers, "t", group_instance_id="i") as other:
                    await until(lambda: joined(other))
                    # The error is raised at once, the revoke is a task of its own.
                    await until(lambda: again.errors and not again.assigned)
                    assert isinstance(again.errors[0], FencedError) and again.connector.failed is again.errors[0]
                    assert again.connector.state is State.FATAL

    run(test())


def test_broker_without_consumer_groups() -> None:
    async def test() -> None:
        settings = {"group.coordinator.rebalance.protocols": "classic"}
        async with Broker(settings) as broker, member(broker.bootstrap_servers, "t", group_protocol="consumer") as one:
            await until(lambda: one.errors)
            assert isinstance(one.errors[0], UnsupportedError)
            assert 'group_protocol="classic"' in str(one.errors[0])

    run(test())


def test_callbacks_that_are_cancelled_or_fail() -> None:
    """The member goes on; the error is raised to the user."""

    class Cancelled(Recorder):
        async def revoke(self, partitions: AbstractSet[TopicPartition], *, lost: bool) -> None:
            await super().revoke(partitions, lost=lost)
            raise asyncio.CancelledError

    async def test() -> None:
        async with Broker() as broker:
            await create_topics(broker.bootstrap_servers, a=1, b=1)
            async with member(broker.bootstrap_servers, recorder=Cancelled("a")) as one:
                await until(lambda: one.assigned)
                one.subscription = type(one.subscription)(frozenset("b"))
                one.connector.subscription_changed()
                await until(lambda: one.assigned == partitions("b", 0))
                assert "CancelledError" in str(one.errors[0])

    run(test())


def test_a_callback_fails_after_a_task_group_in_it_has() -> None:
    # Which leaves the task with a cancellation outstanding, before Python 3.13: as if the callback had been ended.
    class Grouping(Recorder):
        async def assign(self, added: AbstractSet[TopicPartition], assigned: AbstractSet[TopicPartition]) -> None:
            await super().assign(added, assigned)

            async def fail() -> None:
                raise ValueError

            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(60))
                group.create_task(fail())

    async def test() -> None:
        async with Broker() as broker:
            await create_topics(broker.bootstrap_servers, t=4)
            recorder = Grouping("t")
            async with member(broker.bootstrap_servers, recorder=recorder) as one:
                await until(lambda: joined(one) and one.connector.state is State.STABLE)
                (error,) = recorder.errors
                assert isinstance(error, ExceptionGroup)

    run(test())


def test_an_unexpected_error_fails_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with Broker() as broker, member(broker.bootstrap_servers, "t") as one:
            monkeypatch.setattr(one.connector._protocol, "on_response", lambda request, response: 1 // 0)
            await until(lambda: one.connector.failed)
            assert isinstance(one.connector.failed, ZeroDivisionError)

    run(test())


def test_joins_that_are_fenced_again_and_again_are_paused() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            coordinator = FindCoordinatorResponse.Coordinator(key="g", node_id=1, host=broker.host, port=broker.port)
            broker.script = {
                FindCoordinatorRequest: lambda _: FindCoordinatorResponse(coordinators=[coordinator]),
                JoinGroupRequest: lambda _: JoinGroupResponse(
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID, protocol_type=None
                ),
            }
            async with member(broker.address, "t"):
                await until(lambda: len(broker.requests(JoinGroupRequest)) == 3)
                await asyncio.sleep(0.3)
                assert len(broker.requests(JoinGroupRequest)) < 6

    run(test())


def test_closing_ends_while_the_user_does_not() -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t=4)
            async with member(servers, "t") as one, member(servers, "t") as two:
                await until(lambda: joined(one, two))
                one.revoking = two.revoking = asyncio.Event()
                begin = time.monotonic()
                await one.connector.close(timeout_ms=500)
                assert time.monotonic() - begin < 25
                # It told the coordinator, so the other needn't wait for a session's end.
                assert one.connector.state is State.UNSUBSCRIBED
                two.revoking.set()
                await until(lambda: joined(two))

    run(test())


def test_closing_while_a_join_waits() -> None:
    async def test() -> None:
        async with Broker({"group.initial.rebalance.delay.ms": 60_000}) as broker:
            await create_topics(broker.bootstrap_servers, t=4)
            async with member(broker.bootstrap_servers, "t") as one:
                await until(lambda: one.connector.state is State.JOINING and one.connector._protocol.member_id)
                begin = time.monotonic()
                await one.connector.close()
                assert time.monotonic() - begin < 25

    run(test())


def test_restarted_broker(tmp_path: Path) -> None:
    async def test() -> None:
        async with Broker(data_dir=tmp_path) as prepared:  # a member that found no topic would give its partitions up
            await create_topics(prepared.bootstrap_servers, t=4)
        async with Broker() as first:
            port = first.server.port
            servers = first.bootstrap_servers
            await create_topics(servers, t=4)
            one_context = member(servers, "t")
            one = await one_context.__aenter__()
            await until(lambda: joined(one))
        await until(lambda: one.suspended)
        async with Broker(port=port, data_dir=tmp_path):
            # It's a new cluster, which doesn't know the member.
            await until(lambda: one.calls[-1] == "assign" and one.calls.count("assign") == 2 and not one.suspended)
            assert joined(one) and one.calls == ["assign", "lose", "assign"]
            await one_context.__aexit__(None, None, None)

    run(test())
