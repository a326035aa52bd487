from __future__ import annotations

import asyncio
import gc
from typing import Any
from uuid import UUID

import pytest

from kohort.client.cluster import Cluster
from kohort.client.config import ClientConfig
from kohort.client.errors import (
    AuthenticationError,
    ClosedError,
    ConnectionLostError,
    NoBrokerError,
    RequestTimeoutError,
)
from kohort.client.server_cluster_info import Changes, CoordinatorKind
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Response
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.testing.broker import Broker as RealBroker
from tests.client.support.scripted_broker import Asked, HangUpError, Reply, ScriptedBroker
from tests.waiting import run, until

Partition = MetadataResponse.Topic.Partition
GROUP = CoordinatorKind.GROUP


def topic(name: str, leader: int = 1, epoch: int = 0, error: int = 0) -> MetadataResponse.Topic:
    partition = Partition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponse.Topic(name=name, topic_id=UUID(int=7), partitions=[partition], error_code=error)


def quick(*brokers: ScriptedBroker | str, **settings: Any) -> Cluster:
    given = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, "reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 5}
    addresses = [each if isinstance(each, str) else each.address for each in brokers]
    return Cluster(ClientConfig(bootstrap_servers=addresses, **{**given, **settings}))


async def dead_address() -> str:
    """Where nobody listens."""
    async with ScriptedBroker() as broker:
        return broker.address


# Bootstrapping


def test_bootstrap_servers_are_tried_in_turn_until_one_answers() -> None:
    async def main() -> None:
        dead = await dead_address()
        async with (
            ScriptedBroker() as good,
            ScriptedBroker({MetadataRequest: _hang_up}) as bad,
            quick(dead, bad, good) as cluster,
        ):
            assert cluster.info.brokers == {1: good.broker}
            assert cluster.info.cluster_id == "scripted"
            assert (await cluster.any_connection()).broker[1:3] == good.broker[1:3]

    run(main())


def test_rounds_go_on_until_a_broker_starts() -> None:
    async def main() -> None:
        broker = ScriptedBroker()
        await broker.listen()
        await broker.stop()
        cluster = quick(broker)
        starting = asyncio.create_task(cluster.start())
        await asyncio.sleep(0.05)
        assert not starting.done()
        async with broker:
            await starting
            await cluster.close()

    run(main())


def test_nobody_there_is_said_when_the_time_is_over() -> None:
    async def main() -> None:
        cluster = quick(await dead_address(), bootstrap_timeout_ms=50)
        with pytest.raises(NoBrokerError, match=r"within 50 ms: it can't be reached: 127.0.0.1:\d+"):
            await cluster.start()
        with pytest.raises(ClosedError):
            await cluster.any_connection()

    run(main())


def test_a_broker_that_will_not_do_ends_the_search() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker:
            cluster = quick(broker, security_protocol="SASL_PLAINTEXT", sasl_username="u", sasl_password="p")
            broker.script.update(_no_sasl())
            with pytest.raises(AuthenticationError):
                await cluster.start()

    run(main())


def test_closing_ends_a_search() -> None:
    async def main() -> None:
        async with ScriptedBroker({ApiVersionsRequest: lambda asked: None}) as silent:
            cluster = quick(silent)
            starting = asyncio.create_task(cluster.start())
            await until(lambda: silent.asked)
            await cluster.close()
            with pytest.raises(ClosedError):
                await starting

    run(main())


def test_when_all_known_brokers_are_gone_the_bootstrap_servers_are_asked_again() -> None:
    async def main() -> None:
        async with ScriptedBroker() as front, ScriptedBroker(node_id=2) as other:
            # The front tells of others only, as a load balancer's address does.
            tells = [front.broker._replace(port=1)]
            front.script[MetadataRequest] = lambda asked: MetadataResponse(
                brokers=[
                    MetadataResponse.Broker(node_id=each.node_id, host=each.host, port=each.port) for each in tells
                ]
            )
            async with quick(front) as cluster:
                assert cluster.info.brokers == {1: tells[0]}
                tells[:] = [other.broker]
                front.hang_up()
                await cluster.refresh()
                assert cluster.info.brokers == {2: other.broker}
                assert (await cluster.connection(2)).broker == other.broker

    run(main())


def test_a_broker_may_send_us_back_to_the_bootstrap_servers() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            first = await cluster.connection(1)
            replies = [129]

            def once(asked: Asked) -> Response:
                return MetadataResponse(error_code=129) if replies and replies.pop() else broker.metadata(asked)

            broker.script[MetadataRequest] = once
            await cluster.refresh()
            assert first.closed
            assert cluster.info.brokers == {1: broker.broker}

    run(main())


# Connections


def test_there_is_one_connection_for_a_broker_and_lane() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            before = broker.connections
            one, two, other = await asyncio.gather(
                cluster.connection(1), cluster.connection(1), cluster.connection(1, "fetch")
            )
            assert one is two is await cluster.connection(1)
            assert other is not one
            assert broker.connections == before + 2
            with pytest.raises(ConnectionLostError, match="broker 9 isn't known"):
                await cluster.connection(9)
        with pytest.raises(ClosedError):
            await cluster.connection(1)

    run(main())


def test_one_who_gives_up_waiting_leaves_the_connection_to_the_others() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            go = asyncio.Event()

            async def slow(asked: Asked) -> Response:
                await go.wait()
                return broker.api_versions()

            broker.script[ApiVersionsRequest] = slow
            count = len(broker.asked)
            impatient = asyncio.create_task(cluster.connection(1, "x"))
            patient = asyncio.create_task(cluster.connection(1, "x"))
            await until(lambda: len(broker.asked) > count)
            impatient.cancel()
            go.set()
            assert not (await patient).closed
            assert impatient.cancelled() or (await asyncio.gather(impatient, return_exceptions=True))

    run(main())


def test_a_connection_that_nobody_waits_for_any_more_may_fail_in_silence() -> None:
    async def main() -> None:
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            go = asyncio.Event()

            async def slow(asked: Asked) -> Response:
                await go.wait()
                raise HangUpError

            broker.script[ApiVersionsRequest] = slow
            count = len(broker.asked)
            impatient = asyncio.create_task(cluster.connection(1, "x"))
            await until(lambda: len(broker.asked) > count)
            impatient.cancel()
            await asyncio.wait([impatient])
            del impatient  # what it remembers would keep the connection's task, and that its complaint
            go.set()
            await until(lambda: not any(each.get_name().startswith("kohort-open") for each in asyncio.all_tasks()))
        gc.collect()
        assert not complaints

    run(main())


def test_a_broker_that_is_down_is_not_hammered() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker, reconnect_backoff_ms=40) as cluster:
            broker.script[ApiVersionsRequest] = _hang_up
            loop = asyncio.get_running_loop()
            began = loop.time()
            for _ in range(3):
                with pytest.raises(ConnectionLostError):
                    await cluster.connection(1, "fetch")
            assert loop.time() - began >= 2 * 0.04 * 0.8

    run(main())


def test_a_broker_that_moves_is_followed() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, ScriptedBroker() as elsewhere, quick(broker) as cluster:
            old = await cluster.connection(1)
            cluster.info.learn_broker(elsewhere.broker)
            new = await cluster.connection(1)
            assert new.broker == elsewhere.broker
            await until(lambda: old.closed)

    run(main())


def test_idle_connections_are_closed_but_not_those_that_wait() -> None:
    async def main() -> None:
        async with ScriptedBroker({HeartbeatRequest: lambda asked: None}) as broker:
            async with quick(broker, connections_max_idle_ms=1) as cluster:
                idle = await cluster.connection(1)
                busy = await cluster.connection(1, "busy")
                waiting = busy.send(HeartbeatRequest(), HeartbeatResponse)
                await until(lambda: idle.closed)
                assert not busy.closed
                assert await cluster.connection(1) is not idle
            with pytest.raises(ConnectionLostError):
                await waiting

    run(main())


def test_any_broker_will_do_where_another_one_breaks() -> None:
    async def main() -> None:
        replies: list[Reply] = [_hang_up, _hang_up, lambda asked: HeartbeatResponse(error_code=25)]

        def reply(asked: Asked) -> Any:
            return replies.pop(0)(asked)

        async with ScriptedBroker({HeartbeatRequest: reply}) as broker, quick(broker) as cluster:
            answer = await cluster.ask_any(HeartbeatRequest(), HeartbeatResponse)
            assert (answer.error_code, len(broker.requests(HeartbeatRequest))) == (25, 3)
            broker.script[HeartbeatRequest] = _hang_up
            with pytest.raises(NoBrokerError, match=r"Heartbeat: no broker answered within 40 ms: .*closed"):
                await cluster.ask_any(HeartbeatRequest(), HeartbeatResponse, timeout_ms=40)

    run(main())


# Topics


def test_topics_are_found_waited_for_and_followed() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            waiting = asyncio.create_task(cluster.topic("t"))
            await until(lambda: len(broker.requests(MetadataRequest)) > 3)
            broker.topics["t"] = topic("t")
            assert (await waiting).partitions[0].leader == 1
            broker.topics["t"] = topic("t", epoch=3)
            await cluster.refresh()
            assert cluster.info.leader_epoch(TopicPartition("t", 0)) == 3
            with pytest.raises(KafkaError) as missing:
                await cluster.topic("u", timeout_ms=20)
            assert missing.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            broker.topics["v"] = topic("v", error=29)
            with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                await cluster.topic("v")

    run(main())


def test_what_refreshes_ask_for_is_what_is_followed() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            broker.topics.update({name: topic(name) for name in "abc"})
            cluster.follow({"a"})
            await until(lambda: cluster.info.topics.keys() == {"a"})
            cluster.follow({"a", "b"})
            await until(lambda: cluster.info.topics.keys() == {"a", "b"})
            cluster.follow_only({"c"})
            await until(lambda: cluster.info.topics.keys() == {"c"})
            cluster.follow_all()
            await until(lambda: cluster.info.topics.keys() == {"a", "b", "c"})
            cluster.follow_only({"b"})
            assert cluster.info.topics.keys() == {"b"}
            await cluster.refresh()
            request = broker.requests(MetadataRequest)[-1]
            assert isinstance(request, MetadataRequest)
            assert [each.name for each in request.topics or ()] == ["b"]
            assert not request.allow_auto_topic_creation

    run(main())


def test_a_topic_given_up_while_it_is_asked_for_does_not_come_back() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            broker.topics["t"] = topic("t")
            await cluster.topic("t")
            go = asyncio.Event()

            async def slow(asked: Asked) -> Response:
                await go.wait()
                return broker.metadata(asked)

            broker.script[MetadataRequest] = slow
            count = len(broker.asked)
            refreshing = asyncio.create_task(cluster.refresh())
            await until(lambda: len(broker.asked) > count)
            cluster.follow_only(())
            go.set()
            await refreshing
            assert (cluster.info.topics, cluster.info.errors) == ({}, {})

    run(main())


def test_changes_are_told_and_hints_count() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            broker.topics["t"] = topic("t")
            await cluster.topic("t")
            seen: list[Changes] = []
            end = cluster.on_change(seen.append)
            at = TopicPartition("t", 0)
            waiting = asyncio.create_task(cluster.wait_for_change(10_000))
            await asyncio.sleep(0)
            assert cluster.learn_leader(at, 2, 5, Broker(2, "b2", 1))
            assert await waiting
            assert not cluster.learn_leader(at, 3, 5, Broker(3, "b3", 1))
            assert seen == [Changes(leaders=frozenset({at}))]
            await cluster.refresh()
            assert cluster.info.leader_epoch(at) == 5, "the answer was of an older leader"
            end()
            assert not await cluster.wait_for_change(5)

    run(main())


def test_a_missing_leader_is_asked_for_until_there_is_one() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            broker.topics["t"] = topic("t", leader=-1)
            cluster.follow({"t"})
            await until(lambda: len(broker.requests(MetadataRequest)) > 4)
            broker.topics["t"] = topic("t", leader=1, epoch=1)
            await until(lambda: cluster.info.leader(TopicPartition("t", 0)))

    run(main())


def test_refreshing_says_when_no_broker_answers() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker, quick(broker) as cluster:
            broker.script[MetadataRequest] = _hang_up
            with pytest.raises(NoBrokerError, match=r"within 50 ms: .*closed the connection"):
                await cluster.refresh(timeout_ms=50)
            del broker.script[MetadataRequest]
            await cluster.refresh()

    run(main())


# Coordinators


def test_coordinators_are_found_once_and_again_when_forgotten() -> None:
    codes = [14, 15, 0, 0]

    def find(asked: Asked) -> Response:
        assert isinstance(asked.request, FindCoordinatorRequest)
        (key,) = asked.request.coordinator_keys
        found = FindCoordinatorResponse.Coordinator(
            key=key, error_code=codes.pop(0), node_id=1, host=where.host, port=where.port
        )
        return FindCoordinatorResponse(coordinators=[found])

    where = ScriptedBroker({FindCoordinatorRequest: find})

    async def main() -> None:
        async with where as broker, quick(broker) as cluster:
            assert await cluster.coordinator(GROUP, "g") == await cluster.coordinator(GROUP, "g") == 1
            assert codes == [0]
            connection = await cluster.coordinator_connection(GROUP, "g")
            assert connection is await cluster.connection(1, "coordinator")
            cluster.forget_coordinator(GROUP, "g")
            assert await cluster.coordinator(GROUP, "g") == 1
            assert codes == []

    run(main())


def test_a_coordinator_that_cannot_be_reached_is_forgotten() -> None:
    def find(asked: Asked) -> Response:
        found = FindCoordinatorResponse.Coordinator(key="g", node_id=5, host="127.0.0.1", port=1)
        return FindCoordinatorResponse(coordinators=[found])

    async def main() -> None:
        async with ScriptedBroker({FindCoordinatorRequest: find}) as broker, quick(broker) as cluster:
            with pytest.raises(ConnectionLostError):
                await cluster.coordinator_connection(GROUP, "g")
            assert cluster.info.coordinators == {}

    run(main())


def test_coordinators_that_are_refused_or_not_there_are_errors() -> None:
    codes = [30]

    def find(asked: Asked) -> Response:
        assert isinstance(asked.request, FindCoordinatorRequest)
        assert (asked.version, asked.request.key, asked.request.key_type) == (3, "g", 1)
        return FindCoordinatorResponse(error_code=codes[0], error_message="no")

    async def main() -> None:
        versions = {FindCoordinatorRequest: (0, 3)}
        script = {FindCoordinatorRequest: find}
        async with ScriptedBroker(script, versions=versions) as broker, quick(broker) as cluster:
            with pytest.raises(KafkaError, match=r"GROUP_AUTHORIZATION_FAILED.*no"):
                await cluster.coordinator(CoordinatorKind.TRANSACTION, "g")
            codes[0] = 15
            with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
                await cluster.coordinator(CoordinatorKind.TRANSACTION, "g", timeout_ms=30)

    run(main())


# With a real one


def test_with_a_broker_that_restarts() -> None:
    async def main() -> None:
        async with RealBroker() as broker:
            port = broker.server.port
            cluster = quick(broker.bootstrap_servers)
            await cluster.start()
            info = await cluster.topic("t", create=True)
            assert info.partitions[0].leader in cluster.info.brokers
            node = await cluster.coordinator(GROUP, "g")
            connection = await cluster.coordinator_connection(GROUP, "g")
            answer = await connection.ask(HeartbeatRequest(group_id="g", member_id="m"), HeartbeatResponse)
            assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await until(lambda: connection.closed)
        with pytest.raises((ConnectionLostError, RequestTimeoutError)):
            await cluster.refresh(timeout_ms=50)
        async with RealBroker(port=port):
            await cluster.refresh()
            assert (await cluster.connection(node, "coordinator")) is not connection
            await cluster.close()

    run(main())


def _hang_up(asked: Asked) -> bytes:
    raise HangUpError


def _no_sasl() -> dict[Any, Any]:
    from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

    return {SaslHandshakeRequest: lambda asked: SaslHandshakeResponse(error_code=33)}
