"""Columns of times that aren't in the values: computed from a number there, or the record's own timestamp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

RECORD_TIME: Final = "_timestamp"
"""TIMESTAMP: in a schema, the record's own timestamp."""

FUNCTIONS: Final = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1_000, "timestamp_micros": 1}
"""Spark's functions that make a time of a number since 1970, and its unit in µs."""


@dataclass(frozen=True)
class DerivedTime:
    """A column of times.

    Attributes:
        function: one of `FUNCTIONS`; "" for the record's own timestamp.
        column: what the function takes, a column of whole numbers.
    """

    name: str
    function: str = ""
    column: str = ""

    def of(self, numbers: pa.Array) -> pa.Array:
        """The times of `column`, or of timestamps of records (ms). Null beyond the years 1 to 9999, and for no time."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from kohort.spark.formats.times import FIRST_US, LAST_US

        numbers = numbers.cast(pa.int64())
        unit = FUNCTIONS[self.function or "timestamp_millis"]
        least = -(-FIRST_US // unit) if self.function else 0  # a record without a timestamp has a negative one
        there = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, LAST_US // unit))
        micros = pc.multiply(pc.if_else(there, numbers, None), unit)
        return micros.cast(pa.timestamp("us", "UTC"))
