"""The channel, fed with whatever a broker or a bad network may send."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.channel import Channel
from kohort.client.errors import ConnectionLostError
from kohort.client.types import Broker
from kohort.protocol.message import Response
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Transport:
    """Takes what is written; says when it was aborted."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.aborted = False

    def write(self, data: bytes) -> None: ...

    def set_write_buffer_limits(self, high: int) -> None: ...

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.channel.connection_lost(None)


def feed(channel: Channel, data: bytes, piece: int) -> None:
    """Give bytes as a socket does, some at a time."""
    while data and channel.why is None:
        room = channel.get_buffer(-1)
        count = min(len(room), piece, len(data))
        room[:count] = data[:count]
        data = data[count:]
        channel.buffer_updated(count)


def answer(correlation: int) -> bytes:
    body = struct.pack(">ib", correlation, 0) + HeartbeatResponse(error_code=correlation).encode(4)
    return struct.pack(">i", len(body)) + body


def check(whole: bytes, piece: int, requests: int) -> list[Any]:
    """What those who wait have after these bytes and then the end of the stream: an answer, or why there is none."""

    async def main() -> list[Any]:
        channel = Channel(Broker(1, "b", 9092), "me", 1000)
        transport = Transport(channel)
        channel.connection_made(cast(asyncio.Transport, transport))
        futures = [channel.ask(HeartbeatRequest(), 4, HeartbeatResponse, 60_000) for _ in range(requests)]
        feed(channel, whole, piece)
        if channel.why is None:
            channel.eof_received()
        assert transport.aborted
        assert channel.in_flight == 0
        channel.connection_lost(None)
        await channel.close()
        return await asyncio.gather(*futures, return_exceptions=True)

    return asyncio.run(main())


def all_right(found: list[Any]) -> int:
    """How many answers there are: the first ones, and after them only errors."""
    good = [each for each in found if isinstance(each, Response)]
    assert [each.error_code for each in cast(list[HeartbeatResponse], good)] == [*range(1, len(good) + 1)]
    assert all(isinstance(each, ConnectionLostError) for each in found[len(good) :])
    return len(good)


@given(requests=st.integers(1, 4), cut=st.integers(0, 100), piece=st.integers(1, 30))
def test_a_stream_that_is_cut_anywhere_gives_what_was_whole(requests: int, cut: int, piece: int) -> None:
    whole = b"".join(answer(n + 1) for n in range(requests))
    found = check(whole[:cut], piece, requests)
    assert all_right(found) == min(cut // len(answer(1)), requests)


@given(data=st.binary(max_size=80), piece=st.integers(1, 30), requests=st.integers(0, 3))
def test_garbage_ends_the_channel_and_nobody_waits_any_more(data: bytes, piece: int, requests: int) -> None:
    check(data, piece, requests)


@given(order=st.lists(st.integers(0, 5), max_size=6), piece=st.integers(1, 60))
def test_answers_out_of_turn_are_given_to_nobody(order: list[int], piece: int) -> None:
    found = check(b"".join(map(answer, order)), piece, 4)
    right = 0
    while right < min(len(order), 4) and order[right] == right + 1:
        right += 1
    assert all_right(found) == right
