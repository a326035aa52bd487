from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.errors import ConnectionLostError, RequestTimeoutError, UnsupportedError
from kohort.client.types import Broker
from kohort.protocol.message import Response
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.messages.produce import ProduceRequest
from tests.client.support.scripted_broker import Asked, HangUpError, ScriptedBroker, frame
from tests.waiting import run, until

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
METADATA = MetadataRequest(topics=[])


def beaten(asked: Asked) -> Response:
    return HeartbeatResponse(error_code=0)


def config(broker: ScriptedBroker, **settings: Any) -> ClientConfig:
    return ClientConfig(bootstrap_servers=broker.address, **settings)


def scenario(
    test: Callable[[ScriptedBroker, Connection], Awaitable[None]], script: Any = None, **settings: Any
) -> ScriptedBroker:
    """Run a test with an open connection to a scripted broker."""

    async def main() -> ScriptedBroker:
        async with ScriptedBroker(script) as broker:
            connection = await Connection.open(broker.broker, config(broker, **settings))
            try:
                await test(broker, connection)
            finally:
                await connection.close()
            return broker

    return run(main())


def test_answers_come_to_those_who_asked_in_order() -> None:
    def coordinator(asked: Asked) -> Response:
        assert isinstance(asked.request, FindCoordinatorRequest)
        (key,) = asked.request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key=key, node_id=int(key))])

    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        futures = [
            connection.send(FindCoordinatorRequest(coordinator_keys=(str(n),)), FindCoordinatorResponse)
            for n in range(50)
        ]
        beat = connection.send(BEAT, HeartbeatResponse)
        assert connection.in_flight == 51
        answers = await asyncio.gather(*futures)
        assert [answer.coordinators[0].node_id for answer in answers] == [*range(50)]
        assert (await beat).error_code == 0
        assert connection.in_flight == 0

    broker = scenario(test, {FindCoordinatorRequest: coordinator, HeartbeatRequest: beaten})
    assert broker.connections == 1


def test_versions_are_the_newest_that_both_speak() -> None:
    async def main() -> None:
        versions = {HeartbeatRequest: (0, 3), MetadataRequest: (0, 99), ProduceRequest: (90, 99)}
        async with ScriptedBroker({HeartbeatRequest: beaten}, versions=versions) as broker:
            connection = await Connection.open(broker.broker, config(broker))
            assert connection.version(HeartbeatRequest) == 3
            assert connection.version(HeartbeatRequest, most=2) == 2
            assert connection.version(MetadataRequest) == MetadataRequest.__message__.versions[-1]
            assert not connection.speaks(ProduceRequest)
            with pytest.raises(UnsupportedError, match="Produce: the broker speaks versions 90 to 99"):
                connection.tell(ProduceRequest())
            await connection.ask(BEAT, HeartbeatResponse)
            assert broker.asked[-1].version == 3
            await connection.ask(BEAT, HeartbeatResponse, version=1)
            assert broker.asked[-1].version == 1
            with pytest.raises(UnsupportedError, match="GroupInstanceId"):  # set, but not in that version
                await connection.ask(
                    HeartbeatRequest(group_id="g", group_instance_id="i"), HeartbeatResponse, version=1
                )
            await connection.close()

    run(main())


def test_a_broker_with_an_older_api_versions_is_asked_again_in_its_own() -> None:
    def old(asked: Asked) -> Response | bytes:
        spoken = [ApiVersionsResponse.ApiKey(api_key=18, min_version=0, max_version=2)]
        if asked.version > 2:
            asked = asked._replace(version=0)
            return frame(asked, ApiVersionsResponse(error_code=35, api_keys=spoken))
        return ApiVersionsResponse(api_keys=[*spoken, ApiVersionsResponse.ApiKey(api_key=12, max_version=1)])

    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        assert [each.version for each in broker.asked] == [5, 2]
        assert connection.version(HeartbeatRequest) == 1

    scenario(test, {ApiVersionsRequest: old})


def test_a_broker_that_does_not_tell_its_versions_is_refused() -> None:
    def rude(asked: Asked) -> Response:
        return ApiVersionsResponse(error_code=42)

    async def main() -> None:
        async with ScriptedBroker({ApiVersionsRequest: rude}) as broker:
            with pytest.raises(UnsupportedError, match="error 42"):
                await Connection.open(broker.broker, config(broker))

    run(main())


def hang_up(asked: Asked) -> bytes:
    raise HangUpError


def hang_up_amid(asked: Asked) -> bytes:
    raise HangUpError(frame(asked, HeartbeatResponse())[:-1])


def wrong_id(asked: Asked) -> bytes:
    return frame(asked, HeartbeatResponse(), correlation=asked.correlation + 1)


def twice(asked: Asked) -> bytes:
    return frame(asked, HeartbeatResponse()) * 2


def cut_short(asked: Asked) -> bytes:
    whole = frame(asked, HeartbeatResponse())
    return (len(whole) - 6).to_bytes(4) + whole[4:-2]


def too_long(asked: Asked) -> bytes:
    whole = frame(asked, HeartbeatResponse())
    return (len(whole) - 3).to_bytes(4) + whole[4:] + b"?"


def oversize(asked: Asked) -> bytes:
    return (2**30).to_bytes(4)


def tiny(asked: Asked) -> bytes:
    return b"\0\0\0\2ab"


def bad_tags(asked: Asked) -> bytes:
    return b"\0\0\0\x06" + asked.correlation.to_bytes(4) + b"\xff\xff"


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (hang_up, "Heartbeat: the broker closed the connection"),
        (hang_up_amid, "the broker closed the connection"),
        (wrong_id, r"an answer to request \d+, but the one to \d+ is next"),
        (cut_short, "HeartbeatResponse v4, field ErrorCode, byte"),
        (too_long, "1 bytes too many"),
        (oversize, "an answer of 1073741824 bytes; receive_message_max_bytes is 1000000"),
        (tiny, "an answer of 2 bytes"),
        (bad_tags, "an answer that doesn't decode: ResponseHeader v1"),
    ],
)
def test_what_should_not_come_is_a_lost_connection_for_all_who_wait(reply: Any, says: str) -> None:
    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        lost: list[Connection] = []
        connection.on_lost = lost.append
        first = connection.send(BEAT, HeartbeatResponse)
        second = connection.send(METADATA, MetadataResponse)
        with pytest.raises(ConnectionLostError, match=says):
            await first
        with pytest.raises(ConnectionLostError, match="Metadata: "):
            await second
        assert connection.closed
        assert lost == [connection]
        with pytest.raises(ConnectionLostError):
            connection.send(BEAT, HeartbeatResponse)
        with pytest.raises(ConnectionLostError):
            await connection.drained()

    scenario(test, {HeartbeatRequest: reply}, receive_message_max_bytes=1_000_000)


def test_a_broker_that_hangs_up_at_the_first_request_may_want_sasl() -> None:
    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        with pytest.raises(ConnectionLostError, match="does it want SASL"):
            await connection.ask(BEAT, HeartbeatResponse)

    async def later(broker: ScriptedBroker, connection: Connection) -> None:
        await connection.ask(METADATA, MetadataResponse)
        with pytest.raises(ConnectionLostError, match=r"closed the connection$"):
            await connection.ask(BEAT, HeartbeatResponse)

    scenario(test, {HeartbeatRequest: hang_up})
    scenario(later, {HeartbeatRequest: hang_up})


def test_an_answer_that_comes_twice_is_given_once() -> None:
    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        assert (await connection.ask(BEAT, HeartbeatResponse)).error_code == 0
        await until(lambda: connection.closed)
        with pytest.raises(ConnectionLostError, match="but nothing was asked"):
            await connection.ask(BEAT, HeartbeatResponse)

    scenario(test, {HeartbeatRequest: twice})


def test_silence_is_a_timeout_and_closes_the_connection() -> None:
    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        later = connection.send(BEAT, HeartbeatResponse)
        with pytest.raises(RequestTimeoutError, match="Heartbeat wasn't answered within 30 ms"):
            await connection.ask(BEAT, HeartbeatResponse, timeout_ms=30)
        with pytest.raises(ConnectionLostError, match="Heartbeat wasn't answered within 30 ms"):
            await later
        assert connection.closed

    scenario(test, {HeartbeatRequest: lambda asked: None})


def test_one_who_gives_up_does_not_disturb_the_others() -> None:
    go = asyncio.Event()

    async def slow(asked: Asked) -> Response:
        await go.wait()
        return HeartbeatResponse()

    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        impatient = asyncio.create_task(connection.ask(BEAT, HeartbeatResponse))
        await until(lambda: broker.requests(HeartbeatRequest))
        patient = connection.send(METADATA, MetadataResponse)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        go.set()
        assert (await patient).cluster_id == "scripted"

    scenario(test, {HeartbeatRequest: slow})


def test_a_broker_that_does_not_finish_setting_up_is_given_up() -> None:
    async def main() -> None:
        async with ScriptedBroker({ApiVersionsRequest: lambda asked: None}) as broker:
            with pytest.raises(ConnectionLostError, match="no connection within 40 ms"):
                await Connection.open(broker.broker, config(broker, socket_connection_setup_timeout_ms=40))
            with pytest.raises(ConnectionLostError, match="ApiVersions wasn't answered within 40 ms"):
                await Connection.open(broker.broker, config(broker, request_timeout_ms=40))

    run(main())


def test_a_port_where_nobody_listens_is_a_lost_connection() -> None:
    async def main() -> None:
        async with ScriptedBroker() as broker:
            address = broker.broker
            settings = config(broker)
        with pytest.raises(ConnectionLostError, match=f"{address.host}:{address.port}"):
            await Connection.open(address, settings)
        with pytest.raises(ConnectionLostError, match=r"nowhere.invalid"):
            await Connection.open(Broker(3, "nowhere.invalid", 9092), settings)

    run(main())


def test_a_throttled_client_holds_its_requests_back_in_order() -> None:
    throttle = [150]

    def beat(asked: Asked) -> Response:
        return HeartbeatResponse(throttle_time_ms=throttle.pop() if throttle else 0)

    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        await connection.ask(BEAT, HeartbeatResponse)
        began = loop.time()
        assert connection.throttled_until > began
        first = connection.send(METADATA, MetadataResponse)
        second = connection.send(BEAT, HeartbeatResponse)
        assert connection.in_flight == 2
        await connection.drained()
        assert loop.time() - began >= 0.14
        await asyncio.gather(first, second)
        assert loop.time() - began >= 0.14
        assert [type(each.request) for each in broker.asked[-2:]] == [MetadataRequest, HeartbeatRequest]
        await connection.ask(BEAT, HeartbeatResponse)

    scenario(test, {HeartbeatRequest: beat})


def test_a_throttled_request_has_its_deadline_all_the_same() -> None:
    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        await connection.ask(BEAT, HeartbeatResponse)
        seen = len(broker.asked)
        with pytest.raises(RequestTimeoutError, match="throttles"):
            await connection.ask(BEAT, HeartbeatResponse, timeout_ms=30)
        assert connection.in_flight == 0
        await connection.drained()
        connection.tell(BEAT)
        with pytest.raises(RequestTimeoutError, match="throttles this client for more than 1000 ms"):
            await connection.drained()
        assert not connection.closed
        assert len(broker.asked) == seen

    scenario(
        test, {HeartbeatRequest: lambda asked: HeartbeatResponse(throttle_time_ms=2**31 - 1)}, request_timeout_ms=1000
    )


def test_closing_ends_even_if_the_broker_reads_nothing() -> None:
    stuck = asyncio.Event()

    async def never(asked: Asked) -> None:
        await stuck.wait()

    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        large = HeartbeatRequest(group_id="g" * 30_000)
        futures = [connection.send(large, HeartbeatResponse) for _ in range(400)]
        draining = asyncio.create_task(connection.drained())
        await asyncio.sleep(0)
        assert not draining.done()
        await connection.close()
        with pytest.raises(ConnectionLostError, match="it was closed here"):
            await draining
        for future in futures:
            assert isinstance(future.exception(), ConnectionLostError)

    scenario(test, {HeartbeatRequest: never})


def test_what_was_told_before_closing_still_goes_out() -> None:
    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        connection.tell(BEAT)
        await connection.close()
        await until(lambda: broker.requests(HeartbeatRequest))

    scenario(test, {HeartbeatRequest: lambda asked: None})


def test_long_requests_and_answers_arrive_whole() -> None:
    def echo(asked: Asked) -> Response:
        assert isinstance(asked.request, FindCoordinatorRequest)
        found = [FindCoordinatorResponse.Coordinator(key=key) for key in asked.request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    async def test(broker: ScriptedBroker, connection: Connection) -> None:
        keys = tuple(f"{n:05}" * 1000 for n in range(400))
        answers = await asyncio.gather(
            *(connection.ask(FindCoordinatorRequest(coordinator_keys=keys), FindCoordinatorResponse) for _ in range(2)),
            connection.ask(FindCoordinatorRequest(coordinator_keys=("k",)), FindCoordinatorResponse),
        )
        for answer in answers[:2]:
            assert tuple(each.key for each in answer.coordinators) == keys
        assert answers[2].coordinators[0].key == "k"

    scenario(test, {FindCoordinatorRequest: echo})


def test_long_answers_arrive_whole_in_uvloop_too() -> None:
    def long(asked: Asked) -> Response:
        return FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key="k" * 30_000)] * 50)

    async def main() -> None:
        async with ScriptedBroker({FindCoordinatorRequest: long}) as broker:
            connection = await Connection.open(broker.broker, config(broker))
            asked = [connection.send(FindCoordinatorRequest(), FindCoordinatorResponse) for _ in range(3)]
            for answer in await asyncio.gather(*asked):
                assert {each.key for each in answer.coordinators} == {"k" * 30_000}
            await connection.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
