"""What the console shows of records that an application has just written to its changelogs and repartition topics."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from kohort.console.record_decoding import Decoded, RecordDecoder
from kohort.console.record_text import shown_as
from kohort.spark import StreamsApp, avg, collect, count, count_distinct, window
from kohort.spark.testing import TestDriver

FIVE = "2013-01-01T05:00:00.000Z"
AT_FIVE = datetime(2013, 1, 1, 5, tzinfo=UTC)


def decoded(driver: TestDriver, topic: str) -> list[tuple[Decoded, Decoded]]:
    """Keys and values of a topic's records, as the console has them."""
    decoder = RecordDecoder()
    records = driver._run()._topics.written(topic).to_pylist()
    for each in records:  # it can be shown, whatever it is
        assert shown_as(decoder.value(topic, each["key"], each["value"]), each["value"]).text
    return [(decoder.key(topic, each["key"]), decoder.value(topic, each["key"], each["value"])) for each in records]


def flight(carrier: str, origin: str, delay: float) -> dict[str, Any]:
    return {"carrier": carrier, "origin": origin, "delay": delay, "time_hour": AT_FIVE}


def test_changelogs_of_aggregates_and_tables(spark: SparkSession) -> None:
    app = StreamsApp("seen", bootstrap_servers="127.0.0.1:1")
    flights = app.stream(
        "flights",
        schema="carrier STRING, origin STRING, delay DOUBLE, time_hour TIMESTAMP",
        key="carrier",
        event_time="time_hour",
    )
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    by_hour = flights.join(airlines, "carrier").group_by("origin", window("time_hour", "1 hour"))
    by_hour.aggregate(
        "delays", n=count(), mean=avg("delay"), names=collect("name", limit=10), carriers=count_distinct("carrier")
    ).to("out")
    with TestDriver(app, spark) as driver:
        driver.pipe("airlines", [{"carrier": "AA", "name": "American"}, {"carrier": "UA", "name": "{United}"}])
        driver.pipe("flights", [flight("AA", "JFK", 10.0), flight("UA", "JFK", 20.0)])
        driver.delete("airlines", "UA")
        topics = driver._run()._topics.names()

        key, value = decoded(driver, "seen-delays-changelog")[-1]
        assert (key.value, key.form) == ({"window": FIVE, "origin": "JFK"}, "json")
        assert (value.form, value.note) == ("json", "results, and their state")
        results = {name: value.value[name] for name in ("n", "mean", "names", "carriers")}
        assert results == {"n": 2, "mean": 15.0, "names": ["American", "{United}"], "carriers": 2}
        state = value.value["state"]
        assert state["n"] == 2
        assert [name for name, each in state.items() if isinstance(each, (list, dict))], state
        assert not [name for name, each in state.items() if isinstance(each, str) and each[:1] in ("[", "{")], state

        rows = [(key.value, value.value, value.note) for key, value in decoded(driver, "seen-airlines-changelog")]
        assert rows[0] == ("AA", {"carrier": "AA", "name": "American"}, "")
        assert rows[-1] == ("UA", None, "deletes the key")

        (repartition,) = [each for each in topics if each.endswith("-repartition")]
        for key, value in decoded(driver, repartition):
            assert "JFK" in json.dumps(key.value)
            assert value.form == "json", value
