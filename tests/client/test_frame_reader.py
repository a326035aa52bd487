from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.frame_reader import FrameReader, FrameSizeError


def feed(reader: FrameReader, data: bytes, cuts: list[int]) -> list[bytes]:
    frames: list[bytes] = []
    position = 0
    for cut in [*cuts, len(data)]:
        while position < len(data):
            room = reader.buffer()
            count = min(len(room), max(cut, 1), len(data) - position)
            room[:count] = data[position : position + count]
            frames += reader.filled(count)
            position += count
            if cut < len(data):
                break
    return frames


@given(
    sizes=st.lists(st.one_of(st.integers(0, 60), st.integers(16_000, 17_000), st.integers(0, 100_000)), max_size=8),
    cuts=st.lists(st.one_of(st.integers(1, 12), st.integers(1, 40_000)), max_size=40),
)
def test_frames_come_out_whole_wherever_the_stream_is_cut(sizes: list[int], cuts: list[int]) -> None:
    frames = [(bytes([index + 1]) * size) for index, size in enumerate(sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)

    found = feed(FrameReader(200_000), stream, cuts)

    assert found == frames
    assert all(type(frame) is bytes for frame in found)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (struct.pack(">i", 1001), "an answer of 1001 bytes; receive_message_max_bytes is 1000"),
        (struct.pack(">i", -1), "an answer of -1 bytes"),
        (b"HTTP/1.1 400 Bad Request", "HTTP"),
        (b"\x15\x03\x01\x00\x02", "security_protocol=SSL"),
    ],
)
def test_sizes_that_cannot_be_are_refused_with_a_reason(head: bytes, says: str) -> None:
    with pytest.raises(FrameSizeError, match=says):
        feed(FrameReader(1000), head, [])


def test_frames_before_a_size_that_cannot_be_are_given() -> None:
    reader = FrameReader(1000)
    reader.buffer()[:10] = b"\0\0\0\2ok\xff\xff\xff\xff"
    frames = reader.filled(10)
    assert next(frames) == b"ok"
    with pytest.raises(FrameSizeError):
        next(frames)


def test_a_large_frame_is_handed_out_without_a_copy() -> None:
    reader = FrameReader(2**30)
    size = 64 * 2**20
    head = struct.pack(">i", size)
    reader.buffer()[:4] = head
    assert list(reader.filled(4)) == []
    room = reader.buffer()
    assert len(room) == size, "the rest is received right where it stays"
    room[:1], room[-1:] = b"a", b"z"
    del room
    (frame,) = reader.filled(size)
    assert (frame[:1], frame[-1:], len(frame)) == (b"a", b"z", size)
