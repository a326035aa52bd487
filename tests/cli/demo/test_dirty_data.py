from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from kohort.cli.demo.dirty_data import flight_records, reported

BEGIN = datetime(2013, 1, 1, tzinfo=UTC)
HOURS = [BEGIN + timedelta(minutes=number) for number in range(6_000)]  # 100 hours
FLIGHTS = pa.table({"carrier": ["UA", "B6"] * 3_000, "time_hour": pa.array(HOURS, pa.timestamp("s", "UTC"))})


def test_one_in_a_thousand_is_reported_days_later() -> None:
    flights = reported(FLIGHTS)
    hours, times = flights["time_hour"].to_pylist(), flights["reported"].to_pylist()
    assert times == sorted(times)
    late = [hour for hour, time in zip(hours, times, strict=True) if time != hour]
    # Those of the last three days can't be: the year is over before.
    assert late == [HOURS[500], HOURS[1_500]]
    assert sorted(hours) == HOURS
    at = hours.index(HOURS[500])
    assert hours[at - 1] > HOURS[500] + timedelta(days=2, hours=23)


def test_records_have_times_in_milliseconds_and_some_lack_key_or_value() -> None:
    records = flight_records(reported(FLIGHTS)).to_pylist()
    first = {"carrier": "UA", "time_hour": 1_356_998_400_000, "reported": 1_356_998_400_000}
    assert (records[0]["key"], json.loads(records[0]["value"])) == ("UA", first)
    keyless = [record for record in records if record["key"] is None]
    empty = [record for record in records if record["value"] is None]
    assert (len(keyless), len(empty), len(records)) == (6, 6, 6_012)
    assert json.loads(records[2]["value"]) == json.loads(records[1]["value"])  # it comes again
    assert [record["key"] for record in records[1:5]] == ["B6", None, "UA", "UA"]
