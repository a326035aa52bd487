"""Columns of times in the unit of stream time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def millis(times: pa.Array) -> pa.Array:
    """Times in ms since 1970."""
    return pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", times.type.tz)).cast(pa.int64())


def timestamps(times: pa.Array) -> pa.Array:
    """Times in ms since 1970 as timestamps."""
    return times.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
