"""Texts of random letters as Arrow columns, made without a Python object for each."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CHANNELS: Final = 10_000
HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")
_PIECES: Final = 3
"""Of a URL's path."""

Lengths = npt.NDArray[np.int64]


def letters(draw: np.random.Generator, lengths: Lengths) -> pa.StringArray:
    """Texts of the letters a to z, as long as they shall be."""
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    text = draw.integers(ord("a"), ord("z") + 1, int(ends[-1]), np.uint8)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(text))


def padding(draw: np.random.Generator, sizes: Lengths, average: int) -> pa.StringArray:
    """Texts that bring rows of so many bytes to an average, give or take a fifth of what is missing."""
    missing = np.maximum(average - sizes, 0)
    spread = (missing + 2) // 5
    return letters(draw, missing - spread + draw.integers(0, np.maximum(2 * spread, 1)))


def channels(draw: np.random.Generator) -> pa.Table:
    """Channels and their URLs: the hot ones first, and then `CHANNELS` more, nine of ten with an id in the URL."""
    folders = [letters(draw, draw.integers(3, 5, CHANNELS)) for _ in range(_PIECES)]
    urls = pc.binary_join_element_wise("https://www.nexmark.com", *folders, "item.htm?query=1", "/")
    numbers = np.arange(CHANNELS)
    with_id = pc.binary_join_element_wise(urls, pa.array(_reversed_bits(numbers)).cast(pa.string()), "&channel_id=")
    names = pc.binary_join_element_wise("channel", pa.array(numbers).cast(pa.string()), "-")
    hot = len(HOT_CHANNELS)
    return pa.table({
        "channel": pa.concat_arrays([pa.array(HOT_CHANNELS), names]),
        "url": pa.concat_arrays([urls[:hot], pc.if_else(pa.array(draw.random(CHANNELS) < 0.9), with_id, urls)]),
    })  # fmt: skip


def _reversed_bits(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The 32 bits in reverse, as the absolute value of a signed number."""
    bits = np.unpackbits(numbers.astype(">u4").view(np.uint8).reshape(-1, 4), axis=1)
    return np.abs(np.packbits(bits[:, ::-1], axis=1).view(">i4").ravel().astype(np.int64))
