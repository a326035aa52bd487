"""A running application asked over HTTP: what it answers is what another client reads in the changelogs."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import confluent_kafka
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kohort.http_access import OPEN
from kohort.spark import StreamsApp, avg, count, list_state, max_, session, value_state, window
from kohort.testing.broker import Broker
from tests.console.running import console
from tests.console.test_server import page_of

from .applications import Heard, create_topics, members_of, run_until

FLIGHTS = 300
ORDER = "id STRING, city STRING, item STRING, price INT, at TIMESTAMP"
ASKED = (
    "once/York,tea", "best?group=York", "seen-last/York", "seen-items?group=York", "paid-left",
    "paid-left?group=1@2026-01-01T04:00:00Z", "rated-versions?group=York", "visits?key=York",
)  # fmt: skip
"""Paths to what steps have, of each of which there is a row."""
INNER = (
    "visits-due", "visits-sessions/York", "paid-clock", "paid-unmatched?limit=1", "seen-timers/York", "seen-items-ttl",
    "rated-pending", "rated-ending",
)  # fmt: skip
"""Stores that steps keep for themselves."""
SCHEMA = "carrier STRING, origin STRING, dep_delay DOUBLE, time_hour TIMESTAMP"


def test_queries_answer_what_the_changelogs_say(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "airlines")
    _produce(servers)
    app = StreamsApp("asked", bootstrap_servers=servers, state_dir=tmp_path, application_server="127.0.0.1:0")
    flights = app.stream("flights", schema=SCHEMA, key="carrier", event_time="time_hour")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    by_hour = flights.join(airlines).group_by("origin", window("time_hour", "1 hour"))
    by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"), worst=max_("dep_delay"))

    answers: dict[str, Any] = {}
    heard = Heard()
    run_until(app, spark, heard, lambda: _ask(servers, answers))
    assert not heard.failures

    delays = _changelog(servers, "asked-delays-changelog")
    assert sum(json.loads(value)["n"] for value in delays.values()) == FLIGHTS
    day = answers["/stores/delays?from=2013-01-01&to=2013-01-02"]["rows"]
    assert [_compact(row["key"]) for row in day] == sorted(delays)
    for row in day:
        value = json.loads(delays[_compact(row["key"])])
        state = value.pop("state")
        assert row["value"] == value
        short = f"/stores/delays/{row['key']['origin']}@{row['key']['window']}"
        one = answers[short + "?state=true"]
        assert (one["role"], one["lag"], one["key"]) == ("active", 0, row["key"])
        assert one["value"] == {**value, "state": state}
    jfk = [row["key"] for row in day if row["key"]["origin"] == "JFK"]
    assert [row["key"] for row in answers["/stores/delays?key=JFK"]["rows"]] == jfk

    shown = [map(json.loads, row[:2]) for row in page_of(answers["console"]).rows if row[0].startswith("{")]
    assert [(key, value) for key, value in shown] == [(row["key"], row["value"]) for row in day]

    names = _changelog(servers, "asked-airlines-changelog")
    assert {row["key"]: row["value"] for row in answers["/stores/airlines"]["rows"]} == {
        key: json.loads(value) for key, value in names.items()
    }
    assert answers["/stores/airlines/" + quote("Ä/1", safe="")]["value"] == {"carrier": "Ä/1", "name": "ÄÄ"}
    assert answers["/stores/airlines/XX"] == {"error": "no such key", "message": "airlines has no key XX"}
    assert answers["/health"]["status"] == "running"


@pytest.mark.long
def test_what_steps_with_state_have_can_be_asked_for_but_not_what_they_keep_for_themselves(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "orders", "payments", "rates", "o", partitions=1)
    app = StreamsApp("steps", bootstrap_servers=servers, state_dir=tmp_path, application_server="127.0.0.1:0")
    orders = app.stream("orders", schema=ORDER, key="city", event_time="at")
    payments = app.stream("payments", schema="id STRING, paid INT, `when` TIMESTAMP", event_time="when")
    rates = app.table("rates", schema="city STRING, rate DOUBLE", key="city")
    by_city = orders.group_by("city")
    orders.dedupe("city", "item", within="forever", name="once").group_by("city").top(2, by="price", name="best").to(
        "o"
    )
    states = {"last": value_state("item STRING"), "items": list_state("item STRING", ttl="1 day")}
    by_city.process("seen", _seen, output="city STRING", states=states, timers=True).to("o")
    orders.join_stream(payments, "id", within="1 hour", grace="1 minute", how="left", name="paid").to("o")
    orders.join_as_of(rates, "city", history="1 day", grace="1 hour", how="left", name="rated").to("o")
    in_visits = orders.group_by("city", session("at", "30 minutes", grace="1 minute", retention="1 day"))
    in_visits.aggregate("visits", n=count())

    sending = confluent_kafka.Producer({"bootstrap.servers": servers})
    sending.produce("rates", b'{"city":"York","rate":0.5}', b"York", timestamp=1_700_000_000_000)
    for number, (item, price) in enumerate((("tea", 5), ("jam", 7), ("tea", 5)), 1):
        order = {"id": str(number), "city": "York", "item": item, "price": price, "at": f"2026-01-01T05:0{number}:00Z"}
        sending.produce("orders", json.dumps(order), b"York")
    sending.flush()
    answers: dict[str, Any] = {}

    def all_there() -> bool:
        members = members_of(servers, "steps")
        if not members or members[0].streams is None or members[0].streams.endpoint is None:
            return False
        host, port = members[0].streams.endpoint
        for path in (*ASKED, *INNER):
            answers[path] = _get(f"http://{host}:{port}/stores/{path}")
        return sum(row["value"]["n"] for row in _rows(answers["visits?key=York"])) == 3 and all(
            _rows(answers[path]) for path in ASKED
        )

    heard = Heard()
    run_until(app, spark, heard, all_there)
    assert not heard.failures
    assert [path for path in ASKED if not _rows(answers[path])] == []
    assert [row["value"]["item"] for row in _rows(answers["best?group=York"])] == ["jam", "tea"]
    assert _rows(answers["seen-last/York"])[0]["value"]["item"] == "tea"
    (piece,) = _rows(answers["paid-left?group=1@2026-01-01T04:00:00Z"])
    assert [(row["city"], row["item"], row["_offset"]) for row in piece["value"]["rows"]] == [("York", "tea", 0)]
    for path in INNER:
        store = re.split("[/?]", path)[0]
        assert answers[path]["error"] == "store can't be asked for", answers[path]
        assert answers[path]["message"].startswith(f"{store!r} is what a step keeps for itself; its changelog has it.")


def _rows(answer: Any) -> list[Any]:
    """The rows of an answer: of a key one, if it is there."""
    found: list[Any] = answer.get("rows", [answer] if "value" in answer else [])
    return found


def _seen(rows: pa.Table, state: Any) -> pa.Table:
    if rows.num_rows:
        state["last"].put(rows.select(["city", "item"]).slice(rows.num_rows - 1))
        state["items"].append(rows.select(["city", "item"]))
        state.timers.set(rows.select(["city", "at"]).slice(rows.num_rows - 1))
    return rows.select(["city"])


def _ask(servers: str, answers: dict[str, Any]) -> bool:
    """Have the answers by path, once all flights are counted; whether they are."""
    members = members_of(servers, "asked")
    if not members or members[0].streams is None or members[0].streams.endpoint is None:
        return False
    host, port = members[0].streams.endpoint
    url, day = f"http://{host}:{port}", "/stores/delays?from=2013-01-01&to=2013-01-02"
    answers[day] = _get(url + day)
    if sum(row["value"]["n"] for row in answers[day].get("rows", ())) < FLIGHTS:
        return False
    keys = [f"/{row['key']['origin']}@{row['key']['window']}?state=true" for row in answers[day]["rows"]]
    airlines = ["", "/" + quote("Ä/1", safe=""), "/XX"]
    paths = [f"/stores/delays{key}" for key in keys] + [f"/stores/airlines{key}" for key in airlines]
    for path in (*paths, "/stores/delays?key=JFK", "/health"):
        answers[path] = _get(url + path)
    answers["console"] = asyncio.run(_in_console(servers))
    return True


async def _in_console(servers: str) -> str:
    """The page of a store's keys and values, which the console asks the application for."""
    async with console(servers, stores=OPEN) as at:
        return await at.page("/group/stores", id="asked", store="delays")


def _get(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)
    except OSError:
        return {}  # it doesn't listen yet


def _produce(servers: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "partitioner": "murmur2"})
    carriers = ("AA", "UA", "Ä/1")
    for carrier in carriers:
        producer.produce("airlines", json.dumps({"carrier": carrier, "name": carrier[0] * 2}), key=carrier)
    producer.flush()
    for number in range(FLIGHTS):
        carrier = carriers[number % 3]
        flight = {
            "carrier": carrier, "origin": ("JFK", "LGA", "EWR")[number // 7 % 3], "dep_delay": number % 60 - 5.5,
            "time_hour": f"2013-01-01T{number % 4:02}:00:00Z",
        }  # fmt: skip
        producer.produce("flights", json.dumps(flight), key=carrier)
    producer.flush()


def _changelog(servers: str, topic: str) -> dict[str, str]:
    """The last value of each key, as another client reads them."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "check", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False, "enable.metrics.push": False}
    )  # fmt: skip
    found: dict[str, str] = {}
    try:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(10)
            assert message is not None
            if message.error() is not None:
                ended += 1
            else:
                found[(message.key() or b"").decode()] = (message.value() or b"").decode()
    finally:
        consumer.close()
    return found


def _compact(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))
