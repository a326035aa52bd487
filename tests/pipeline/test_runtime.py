"""A whole application in a Spark session: topics, a join, a repartition topic, stores, an output, and SIGTERM."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.client.streams.settings import GroupProtocol
from kohort.spark import DeadLetter, Drop, StreamsApp, avg, count, max_, window
from kohort.spark.errors import ApplicationError
from kohort.spark.runtime.chain_runner import THREAD_NAME
from kohort.testing.broker import Broker

from ..waiting import eventually
from .applications import Heard, create_topics, producer, read, run_until

FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, time_hour TIMESTAMP"


@pytest.mark.parametrize("group_protocol", ["streams", "classic"])
def test_flights(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, group_protocol: GroupProtocol
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "airlines", "delays-by-hour")
    app = StreamsApp("delays-app", bootstrap_servers=servers, state_dir=tmp_path, group_protocol=group_protocol)
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="time_hour")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    late = flights.transform(lambda df: df.where("dep_delay is not null")).join(airlines, "carrier")
    by_hour = late.group_by("origin", window("time_hour", "1 hour"))
    by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"), worst=max_("dep_delay")).to("delays-by-hour")

    expected = _produce(servers)
    heard = Heard()
    run_until(app, spark, heard, lambda: _groups(servers) == expected)
    assert not heard.failures
    assert _groups(servers) == expected
    assert {(each.subtopology, each.input) for each in heard.epochs} >= {("0", "airlines"), ("0", "stream")}
    assert {task[0] for each in heard.epochs for task in each.tasks} == {"0", "1"}
    ours = (THREAD_NAME, "kohort-rpc")
    eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith(ours)], what="threads end")


def test_unreadable_records_go_where_the_program_says(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """Each record is in the output, among the dead letters, or counted as dropped; and one that is to stop all does."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "buried", "left-out", "fatal", "out", "graves", "nowhere")
    good = [b'{"n": %d}' % number for number in range(20)]
    bad = [b'{"n": "many"}', b"{", b"\xff\x00", b"[1]", b'{"n": 1e999}']
    sending = producer(servers)
    for topic, values in (("buried", good + bad), ("left-out", bad + good), ("fatal", [*good[:3], bad[1]])):
        for number, value in enumerate(values):
            sending.produce(topic, value, b"key-%d" % number, partition=number % 2, headers={"trace": b"1"})
    sending.flush()

    app = StreamsApp("careful", bootstrap_servers=servers, state_dir=tmp_path / "careful", on_error=Drop())
    app.stream("buried", schema="n BIGINT", on_error=DeadLetter("graves")).to("out")
    app.stream("left-out", schema="n BIGINT").to("out")
    heard = Heard()
    run_until(app, spark, heard, lambda: len(read(servers, "out")) == 40 and heard.total("dropped") == 10)
    assert sorted(json.loads(one.value())["n"] for one in read(servers, "out")) == sorted([*range(20)] * 2)
    graves = read(servers, "graves")
    assert sorted(one.value() for one in graves) == sorted(bad)
    for one in graves:
        headers = {name: value.decode() for name, value in one.headers()}
        number = 20 + bad.index(one.value())
        assert one.key() == b"key-%d" % number
        context = ("buried", str(number % 2), str(number // 2))
        assert tuple(headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")) == context
        assert headers["__streams.errors.message"] and headers["trace"] == "1"

    app = StreamsApp("strict", bootstrap_servers=servers, state_dir=tmp_path / "strict")
    app.stream("fatal", schema="n BIGINT").to("nowhere")
    with pytest.raises(ApplicationError, match=r"can't be taken: .*fatal-1.* offset 1: .*say on_error="):
        run_until(app, spark, Heard(), lambda: False)
    assert {json.loads(one.value())["n"] for one in read(servers, "nowhere")} <= {0, 1, 2}


def _produce(servers: str) -> dict[tuple[str, str], dict[str, float]]:
    sending = producer(servers)
    for carrier in ("AA", "UA", "DL"):
        sending.produce("airlines", json.dumps({"carrier": carrier, "name": carrier * 2}), key=carrier)
    sending.flush()
    sums: dict[tuple[str, str], list[float]] = {}
    for number in range(500):
        carrier, origin = ("AA", "UA", "DL", "XX")[number % 4], ("JFK", "LGA", "EWR")[number % 3]
        hour = f"2013-01-01T{number % 5:02}:00:00Z"
        delay = None if number % 11 == 0 else float(number % 60)
        flight = {"carrier": carrier, "origin": origin, "dep_delay": delay, "time_hour": hour}
        sending.produce("flights", json.dumps(flight), key=carrier)
        if delay is not None and carrier != "XX":
            sums.setdefault((hour.replace("Z", ".000Z"), origin), []).append(delay)
    sending.flush()
    return {
        group: {"n": len(delays), "mean": round(sum(delays) / len(delays), 9), "worst": max(delays)}
        for group, delays in sums.items()
    }


def _groups(servers: str) -> dict[tuple[str, str], dict[str, float]]:
    found = {}
    for message in read(servers, "delays-by-hour"):
        value = json.loads(message.value())
        key = value.pop("window"), value.pop("origin")
        found[key] = {**value, "mean": round(value["mean"], 9)}
    return found
