"""Dirty data, as in real topics: flights that are reported late, times in ms, records without key or value."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.demo.records import as_records

_ONE_IN: Final = 1_000
_LATE_BY: Final = timedelta(days=3)
"""More than the grace period of the program's windows."""


def reported(flights: pa.Table) -> pa.Table:
    """Flights in the order in which they are reported, with that time as column `reported`.

    It is their hour, except for one flight in a thousand, which is reported days later.
    """
    hours = flights["time_hour"]
    late = pa.array(np.arange(flights.num_rows) % _ONE_IN == _ONE_IN // 2)
    days_later = pc.add(hours, pa.scalar(_LATE_BY, pa.duration("s")))
    late = pc.and_(late, pc.less_equal(days_later, pc.max(hours)))
    when = pc.if_else(late, days_later, hours)
    return flights.append_column("reported", when).take(pc.sort_indices(when))


def flight_records(flights: pa.Table) -> pa.Table:
    """The records of flights, keyed by carrier, with times in ms since 1970.

    One in a thousand is repeated without its key, and another one in a thousand with only its key.
    """
    for at, field in enumerate(flights.schema):
        if pa.types.is_timestamp(field.type):
            millis = flights.column(at).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
            flights = flights.set_column(at, field.name, millis)
    records = as_records(flights, "carrier")
    numbers = np.arange(records.num_rows)
    keyless, empty = numbers[numbers % _ONE_IN == 1], numbers[numbers % _ONE_IN == 2]
    without_key = records.take(keyless).set_column(0, "key", pa.nulls(len(keyless), pa.string()))
    without_value = records.take(empty).set_column(1, "value", pa.nulls(len(empty), pa.string()))
    places = np.concatenate([numbers, keyless, empty])
    return pa.concat_tables([records, without_key, without_value]).take(np.argsort(places, kind="stable"))
