"""Proves records of different sizes many at a time, where there is no compiled loop.

Only the step from one record to the next is done in Python, a tenth of what it takes to look at one. The rest is done
with what is at the same place of each, by functions that go through all of them in C, and with numbers of very many
digits: those of 16 bits are the sizes of a record each.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from operator import add, itemgetter, sub
from typing import Final, NamedTuple

_ONE_BYTE: Final = range(128)

_WIDTHS: Final = bytes(1 if byte in _ONE_BYTE else 2 for byte in range(256))
"""How many bytes a varint has, by its first; of those with more than two it isn't asked."""

_KEY_SIZES: Final = bytes(byte >> 1 for byte in range(256))
_KEYS: Final = bytes(range(0, 128, 2))
_NO_KEY: Final = b"\1"

_EVEN: Final = bytes(range(0, 256, 2))
_LOW: Final = bytes(byte >> 1 & 0x3F for byte in range(256))
_HAS_HIGH: Final = bytes(0 if byte in _ONE_BYTE else 0xFF for byte in range(256))
_AROUND_VALUE: Final = bytes(2 if byte in _ONE_BYTE else 3 for byte in range(256))
"""Bytes of a value's size, and the number of headers after it."""


_AWAY: Final = 1 << 32
"""Where no window reaches."""

_SIZES: Final = [
    _AWAY if byte & 1 else 1 + (byte >> 1) if byte in _ONE_BYTE else 2 + (byte >> 1 & 0x3F) for byte in range(256)
]
_MORE: Final = [byte << 6 if byte in _ONE_BYTE else _AWAY for byte in range(256)]
"""Bytes of a record, by the first byte of its size, and by the second if there is one."""


class Walk(NamedTuple):
    """Records, as far as their sizes lead.

    Attributes:
        window: bytes from the first record on.
        before: the same, from the byte before it on.
        starts: where each begins in the window, and the end of the last one.
        bodies: where it goes on after its size.
    """

    window: bytes
    before: bytes
    starts: list[int]
    bodies: list[int]

    @property
    def records(self) -> int:
        return len(self.bodies)

    def heads(self, size: int) -> bytes:
        """So many bytes of each record, from after its size."""
        window = self.window
        return b"".join([window[body : body + size] for body in self.bodies])


def walk(payload: bytes, at: int, most: int, most_bytes: int) -> Walk:
    """Goes from record to record, from the one at a place on, which isn't the first."""
    window = payload[at : at + most_bytes]
    starts: list[int] = []
    place, sizes, more, found = 0, _SIZES, _MORE, starts.append
    try:
        for _ in range(most):
            found(place)
            size = window[place]
            place += sizes[size] if size < 128 else sizes[size] + more[window[place + 1]]
        found(place)
    except IndexError:
        pass  # the window's end, or a size that is to be looked at closely
    while starts and starts[-1] > len(window):
        starts.pop()
    records = max(len(starts) - 1, 0)
    if records < 2:
        return Walk(window, b"", [], [])
    first = bytes(itemgetter(*starts[:records])(window))
    return Walk(window, payload[at - 1 : at + len(window)], starts, list(map(add, starts, first.translate(_WIDTHS))))


def parts_fit(walked: Walk, run: int, keys: bytes, value_at: int, *, keyed: bool) -> bool:
    """Whether key, value and no headers are all that each of the first `run` records has, and fill it.

    Args:
        keys: a column: the size of each key, a varint.
        value_at: where the size of the value would be in a body, if there were no key.
    """
    if run < 2 or keys.translate(None, _KEYS if keyed else _KEYS + _NO_KEY):
        return False
    ends = walked.starts[1 : run + 1]
    places: Sequence[int] = walked.bodies[:run]
    if keys == keys[:1] * run:
        value_at += _KEY_SIZES[keys[0]]
    else:
        places = list(map(add, places, keys.translate(_KEY_SIZES)))
    at_places = itemgetter(*places)
    window = walked.window
    try:
        left = array("H", map(sub, ends, places))
        low = bytes(at_places(window[value_at:]))
        high = bytes(at_places(window[value_at + 1 :]))
    except (IndexError, OverflowError):
        return False
    if low.translate(None, _EVEN) or any(itemgetter(*ends)(walked.before)):
        return False
    mask = int.from_bytes(low.translate(_HAS_HIGH), "little")
    high = (int.from_bytes(high, "little") & mask).to_bytes(run, "little")
    if not high.isascii():
        return False
    if sys.byteorder == "big":
        left.byteswap()
    sizes = (_spread(high) << 6) + _spread(low.translate(_LOW)) + _spread(low.translate(_AROUND_VALUE))
    return sizes + _spread(bytes([value_at]) * run) == int.from_bytes(left, "little")


def _spread(column: bytes) -> int:
    """Numbers of 16 bits, one after the other."""
    numbers = bytearray(2 * len(column))
    numbers[::2] = column
    return int.from_bytes(numbers, "little")
