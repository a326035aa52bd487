"""Random bytes decode to a message or raise a `ProtocolError` with the position, in bounded time and memory."""

from __future__ import annotations

import contextlib
import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.errors import ProtocolError
from kohort.protocol.message import Message
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.protocol.trace import explain_bytes, trace

from .everything import RandomMessages, label, message_versions

ALL = list(message_versions())
MUTATIONS = 310
"""Mutated inputs for each message and version."""

INTERESTING = [
    b"\xff", b"\x80", b"\x7f", b"\x00", b"\x01", b"\xff\xff", b"\x7f\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\xff", b"\xc3\x28",
]  # fmt: skip


def mutated(data: bytes, draw: random.Random) -> bytes:
    """`data` with a byte flipped, a run overwritten, inserted, removed or repeated, or cut off."""
    raw = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = draw.randrange(len(raw) + 1)
        match draw.randrange(6):
            case 0 if raw:
                raw[at % len(raw)] ^= 1 << draw.randrange(8)
            case 1 if raw:
                raw[at % len(raw)] = draw.randrange(256)
            case 2:
                piece = draw.choice(INTERESTING)
                raw[at : at + len(piece)] = piece
            case 3:
                raw[at:at] = draw.choice(INTERESTING)
            case 4:
                del raw[at : at + draw.randrange(1, 9)]
            case _:
                raw[at:at] = raw[at : at + draw.randrange(1, 30)]
    return bytes(raw)


def check(message: type[Message], version: int, data: bytes) -> bool:
    """Decode; a fault must be explained, and what decodes must be the same message after another turn."""
    try:
        value = message.decode(data, version)
    except ProtocolError as error:
        assert error.message == message.__name__
        assert error.version == version
        assert error.offset is not None, f"unexplained: {error}"
        assert 0 <= error.offset <= len(data)
        return False
    interpreted, _, end = trace(message, version, data)
    assert end == len(data)
    again = value.encode(version)
    assert interpreted.encode(version) == again
    # NaN differs from itself, so messages are compared by their bytes.
    assert message.decode(again, version).encode(version) == again
    return True


@pytest.mark.parametrize(("message", "version"), ALL, ids=label)
def test_mutated_messages(message: type[Message], version: int) -> None:
    draw = RandomMessages(zlib.crc32(f"{message.__name__} {version}".encode()), unknown_tags=True)
    seeds = [draw.message(message, version).encode(version) for _ in range(8)]
    for index in range(MUTATIONS):
        seed = seeds[index % len(seeds)]
        while (data := mutated(seed, draw.random)) == seed:
            pass
        check(message, version, data)


def test_the_fuzz_is_large_enough() -> None:
    assert len(ALL) * MUTATIONS >= 200_000


@pytest.mark.parametrize(("message", "version"), ALL, ids=label)
def test_every_truncation_and_any_trailing_byte_is_refused(message: type[Message], version: int) -> None:
    draw = RandomMessages(f"cut {message.__name__} {version}")
    data = draw.message(message, version).encode(version)
    step = max(1, len(data) // 200)
    for size in range(0, len(data), step):
        assert not check(message, version, data[:size])
    assert not check(message, version, data + b"\0")


@given(case=st.sampled_from(ALL), data=st.binary(max_size=200))
def test_arbitrary_bytes(case: tuple[type[Message], int], data: bytes) -> None:
    check(*case, data)


@given(case=st.sampled_from(ALL), data=st.data())
def test_arbitrary_edits_of_a_message(case: tuple[type[Message], int], data: st.DataObject) -> None:
    message, version = case
    raw = bytearray(RandomMessages(data.draw(st.integers(0, 1000))).message(message, version).encode(version))
    start = data.draw(st.integers(0, len(raw)))
    raw[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    check(message, version, bytes(raw))


def test_memory_is_bounded_by_the_input() -> None:
    """Counts and lengths of billions cost no more than the input could honestly hold."""
    huge = [
        b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x7f\xff\xff\xff", b"\x7f\xff", b"\xff\xff\x7f\xff\xff\xff",
        b"\x00\x7f\xff\xff\xff", b"\x01\xff\xff\xff\xff\x0f", bytes(8) + b"\xff\xff\xff\xff\x0f",
        bytes(4) + b"\x7f\xff\xff\xff", bytes(6) + b"\x7f\xff\xff\xff",
    ]  # fmt: skip
    filling = [bytes(1000), b"\x01" * 1000, b"\x7f" * 1000]
    cases = [(message, max(message.__message__.versions)) for message, _ in ALL] + [
        (message, min(message.__message__.versions)) for message, _ in ALL
    ]
    tracemalloc.start()
    try:
        for message, version in dict.fromkeys(cases):
            codec = message.__codecs__[version]
            with contextlib.suppress(ProtocolError):
                codec.decode(b"")  # the first call compiles
            for head in huge:
                for fill in filling:
                    tracemalloc.reset_peak()
                    before = tracemalloc.get_traced_memory()[0]
                    with contextlib.suppress(ProtocolError):
                        codec.decode(head + fill)
                    peak = tracemalloc.get_traced_memory()[1] - before
                    assert peak < 1000 * 400, f"{message.__name__} v{version} took {peak} bytes for {len(fill)}"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (DescribeGroupsRequest(groups=("",) * 40_000), 5),
        (OffsetFetchRequest(topics=[OffsetFetchRequest.Topic(partition_indexes=tuple(range(40_000)))]), 7),
        (HeartbeatRequest(unknown_tags=dict.fromkeys(range(20_000), b"")), 4),
        (MetadataRequest(topics=[MetadataRequest.Topic()] * 10_000), 12),
    ],
    ids=["strings", "numbers", "tags", "structs"],
)
def test_a_large_message_with_a_small_fault_costs_no_more_memory_than_without(value: Message, version: int) -> None:
    """Finding the fault keeps nothing: what is allocated at the peak is what decoding itself takes."""
    raw = value.encode(version)
    decode = type(value).__codecs__[version].decode
    tracemalloc.start()
    try:
        decode(raw)
        honest = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        with pytest.raises(ProtocolError, match="1 bytes left over"):
            decode(raw + b"x")
        assert tracemalloc.get_traced_memory()[1] < 1.5 * honest + 100_000
    finally:
        tracemalloc.stop()


def test_an_absurd_count_costs_no_time() -> None:
    # 2,147,483,647 topics announced, none there: the loop ends at the first that is missing.
    with pytest.raises(ProtocolError, match="array of 2147483647 elements needs at least 2147483647 bytes, 0 left"):
        MetadataRequest.decode(b"\x7f\xff\xff\xff", 8)


@pytest.mark.parametrize(
    ("message", "version", "data", "path", "offset", "reason"),
    [
        (HeartbeatRequest, 0, "0006", "GroupId", 2, "string of length 6 needs 6 bytes, 0 left"),
        (HeartbeatRequest, 0, "fffe", "GroupId", 0, "the length of the string is -2"),
        (HeartbeatRequest, 0, "ffff", "GroupId", 0, "null string where null is not allowed"),
        (HeartbeatRequest, 4, "00", "GroupId", 0, "null string where null is not allowed"),
        (HeartbeatRequest, 4, "03c328", "GroupId", 1, "invalid UTF-8: invalid continuation byte"),
        (HeartbeatRequest, 4, "ffffffffff01", "GroupId", 0, "varint of more than five bytes"),
        (HeartbeatRequest, 4, "ffffffff1f", "GroupId", 0, "varint of more than 32 bits"),
        (HeartbeatRequest, 4, "02410000000702420000ff", "", 10, "1 bytes left over"),
        (HeartbeatRequest, 4, "024100000007024200020101ff0100", "", 13, "tag 1 after tag 1"),
        (HeartbeatRequest, 4, "02410000000702420001057f41", "tag 5", 12, "a tagged field needs 127 bytes, 1 left"),
        (MetadataResponse, 9, "0000000001010000000003000001610001", "Topics[0].Partitions", 15, "null array"),
        (MetadataRequest, 1, "fffffffe", "Topics", 0, "the length of the array is -2"),
        (StreamsGroupHeartbeatResponse, 0, "00000000000000026d" + "00" * 26 + "05", "", 35, "1 bytes left over"),
        (StreamsGroupHeartbeatResponse, 0, "00000000000000026d" + "00" * 16 + "ff" * 6, "Status", 25, "more than five"),
        (MetadataRequest, 12, "8000", "Topics", 0, "the length of the array is a zero written in 2 bytes"),
        (StreamsGroupHeartbeatRequest, 0, "02410242" + "00" * 14 + "05", "Topology", 18, "null marker is 5"),
    ],
)  # fmt: skip
def test_a_fault_is_named(
    message: type[Message], version: int, data: str, path: str, offset: int, reason: str
) -> None:  # fmt: skip
    with pytest.raises(ProtocolError) as caught:
        message.decode(bytes.fromhex(data), version)
    assert (caught.value.path, caught.value.offset) == (path, offset), str(caught.value)
    assert reason in caught.value.reason


def test_offsets_count_from_the_message_when_it_is_read_out_of_a_frame() -> None:
    frame = b"header" + bytes.fromhex("0006")
    with pytest.raises(ProtocolError) as caught:
        HeartbeatRequest.read(frame, 6, 0)
    assert caught.value.offset == 2
    assert explain_bytes(HeartbeatRequest, 0, frame, 6, False).offset == 2


def test_errors_travel_between_processes() -> None:
    import pickle

    error = explain_bytes(HeartbeatRequest, 0, b"", 0, True)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
