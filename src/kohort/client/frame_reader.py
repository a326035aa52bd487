"""Splits a stream of bytes into frames: four bytes of size, then as many bytes. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["HTTP_ANSWER", "FrameReader", "FrameSizeError"]

HTTP_ANSWER: Final = "an HTTP server answers there, such as a console, and not a Kafka broker"
"""What is said of an address where something else is than a broker."""

_SIZE: Final = struct.Struct(">i")

_SMALL: Final = 16 * 1024
"""Bytes of the buffer for small frames. It is small since there may be many idle connections."""

_KEPT: Final = 8 * 1024 * 1024
"""Bytes of the largest buffer that is kept for the next large frame."""


class FrameSizeError(ValueError):
    """An invalid frame size: the other side doesn't speak Kafka's protocol, or tries to exhaust our memory."""


class FrameReader:
    """Provides a buffer for the next bytes, and yields the frames that they complete.

    Small frames pass through one buffer that is reused. Larger frames have another one, which is kept as long as large
    frames follow each other: copying a frame out of used memory is much quicker than allocating memory for each.

    Args:
        limit: bytes of the longest frame.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._small = bytearray(_SMALL)
        self._view = memoryview(self._small)
        self._start = 0  # of the bytes in the buffer
        self._end = 0
        self._large = bytearray()
        self._size = 0  # of the large frame
        self._rest: memoryview | None = None  # the missing part of the large frame

    def buffer(self) -> memoryview:
        """Returns where the next bytes go; never empty."""
        return self._rest if self._rest is not None else self._view[self._end :]

    def filled(self, count: int) -> Iterator[bytes]:
        """Takes `count` bytes that were put into the buffer; yields the complete frames, without their size.

        The reader can only be used again when all were yielded.

        Raises:
            FrameSizeError: a size below 0 or over the limit, after the frames before it.
        """
        if self._rest is not None:
            if count < len(self._rest):
                self._rest = self._rest[count:]
            else:
                yield self._end_large()
            return
        small, start, end = self._small, self._start, self._end + count
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(small, start)
            if not 0 <= size <= self._limit:
                raise FrameSizeError(_size_error(bytes(small[start : start + 4]), size, self._limit))
            after = start + 4 + size
            if after > end:
                if size + 4 > _SMALL:
                    self._begin_large(size, start + 4, end)
                    start = end
                break
            self._large = bytearray()
            yield bytes(self._view[start + 4 : after])
            start = after
        if start == end:
            start = end = 0
        elif start:
            # Moves the beginning of a frame to the front, to make room for the rest.
            small[: end - start] = small[start:end]
            start, end = 0, end - start
        self._start, self._end = start, end

    def _begin_large(self, size: int, start: int, end: int) -> None:
        if len(self._large) < size:
            self._large = bytearray(size)
        self._size = size
        view = memoryview(self._large)[:size]
        view[: end - start] = self._view[start:end]
        self._rest = view[end - start :]

    def _end_large(self) -> bytes:
        self._rest = None
        frame = bytes(memoryview(self._large)[: self._size])
        if len(self._large) > _KEPT:
            self._large = bytearray()
        return frame


def _size_error(head: bytes, size: int, limit: int) -> str:
    if head == b"HTTP":
        return HTTP_ANSWER
    if head[0] in (0x15, 0x16) and head[1] == 3:
        return "the answer is TLS: this port wants security_protocol=SSL or SASL_SSL"
    return f"an answer of {size} bytes; receive_message_max_bytes is {limit}"
