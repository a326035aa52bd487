"""The proxy does to frames what its plan says, and to the rest nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kohort.protocol.messages.metadata import MetadataRequest
from kohort.testing.broker import Broker

from ..broker.raw import RawClient, frame
from .plans import Cut, Delay, Duplicate, Fault, Frame, Script, Seeded, Swallow, Truncate
from .proxy import FaultyProxy

ASKED = MetadataRequest(topics=[])
FRAME = frame(ASKED, 13)


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[FaultyProxy, int]]:
    """A proxy before a broker, and its port."""
    async with Broker() as broker, FaultyProxy(broker.bootstrap_servers) as proxy:
        yield proxy, int(proxy.bootstrap.rpartition(":")[2])


async def answer(port: int) -> bytes:
    """What comes for the request, with its length prefix."""
    client = await RawClient.connect(port)
    client.writer.write(FRAME)
    body = await client.receive_bytes()
    await client.close()
    return len(body).to_bytes(4, "big") + body


def test_brokers_are_found_behind_the_proxy() -> None:
    async def scenario() -> None:
        async with proxied() as (proxy, port):
            client = await RawClient.connect(port)
            response = await client.call(ASKED)
            assert [f"{each.host}:{each.port}" for each in response.brokers] == [proxy.bootstrap]
            await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", [Cut(10), Truncate(10), Duplicate(), Delay(0.01), Swallow()], ids=repr)
def test_what_happens_to_a_response(fault: Fault) -> None:
    async def scenario() -> None:
        async with proxied() as (proxy, port):
            whole = await answer(port)
            proxy.plan = Script("Metadata", "response", fault)
            client = await RawClient.connect(port)
            client.writer.write(FRAME + frame(ASKED, 13, correlation_id=2))
            second = whole[:4] + b"\0\0\0\x02" + whole[8:]
            expected = {
                Cut: whole[:10],
                Truncate: b"\0\0\0\x0a" + whole[4:14] + second,
                Duplicate: whole * 2 + second,
                Delay: whole + second,
                Swallow: second,
            }[type(fault)]
            assert await asyncio.wait_for(client.reader.readexactly(len(expected)), 5) == expected
            assert await client.closed() if isinstance(fault, Cut) else True
            assert proxy.done == {(type(fault).__name__, "Metadata"): 1}
            await client.close()

    asyncio.run(scenario())


def test_refused_and_stalled_for_a_while() -> None:
    async def scenario() -> None:
        async with proxied() as (proxy, port):
            before = await answer(port)
            async with proxy.refusing():
                with pytest.raises(ConnectionRefusedError):
                    await answer(port)
            async with proxy.stalled():
                later = asyncio.create_task(answer(port))
                assert not (await asyncio.wait([later], timeout=0.05))[0]
            assert await later == before

    asyncio.run(scenario())


def test_connections_end_when_they_are_cut_and_with_the_proxy() -> None:
    async def scenario() -> None:
        async with proxied() as (proxy, port):
            first = await RawClient.connect(port)
            await first.call(ASKED)
            await proxy.cut()
            assert await first.closed()
            second = await RawClient.connect(port)
            await second.call(ASKED)
        assert await second.closed()
        await asyncio.gather(first.close(), second.close())
        with pytest.raises(ConnectionRefusedError):
            await answer(port)

    asyncio.run(scenario())


def test_a_seeded_plan_is_the_same_each_time_and_ends() -> None:
    frames = [Frame("response", "Fetch", 100, 0), Frame("request", "Fetch", 50, 0)] * 200

    def faults() -> list[Fault | None]:
        plan = Seeded(3, rate=0.2, most=30, swallow=True)
        return [plan(frame) for frame in frames]

    found = [fault for fault in faults() if fault]
    assert len(found) == 30
    assert {type(fault) for fault in found} == {Cut, Truncate, Delay, Duplicate, Swallow}
    assert faults() == faults()
