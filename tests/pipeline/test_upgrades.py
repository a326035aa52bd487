"""A running program is changed: what stayed keeps its state, and its results are those of a batch."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, approx_percentile, count, max_, sum_, variance
from kohort.spark.errors import ProgramError
from kohort.spark.program.upgrade_rules import Fate
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until

ORDER = "who STRING, city STRING, amount BIGINT"


def test_what_stayed_keeps_its_state(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    """Aggregates and a column come and go, and with them all subtopologies get other numbers."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "orders", "people", "visits", "by-city", "by-who", "named", "visited")
    rng = random.Random(20)
    sending = producer(servers)
    sent: list[dict[str, Any]] = []

    def send(number: int) -> list[dict[str, Any]]:
        rows = [
            {"who": f"w{rng.randrange(9)}", "city": f"c{rng.randrange(4)}", "amount": rng.randrange(100)}
            for _ in range(number)
        ]
        for row in rows:
            sending.produce("orders", json.dumps(row), key=row["who"])
        sending.flush()
        sent.extend(rows)
        return rows

    for number in range(9):
        person = {"who": f"w{number}", "name": f"n{number}", "team": f"t{number % 2}"}
        sending.produce("people", json.dumps(person), key=person["who"])
    sending.produce("visits", json.dumps({"city": "c0"}), key="c0")

    first = StreamsApp("shop", bootstrap_servers=servers, state_dir=tmp_path)
    orders = first.stream("orders", schema=ORDER, key="who")
    people = first.table("people", schema="who STRING, name STRING", key="who")
    orders.group_by("city").aggregate("by-city", n=count(), worst=max_("amount")).to("by-city")
    orders.group_by("who").aggregate("by-who", n=count()).to("by-who")
    orders.join(people, "who").to("named", key="who")
    assert {each.fate for each in first.plan_upgrade(spark).stores} == {Fate.NEW}
    old = send(400)
    run_until(first, spark, Heard(), lambda: _last(servers, "by-city") == _results(old))

    second = StreamsApp("shop", bootstrap_servers=servers, state_dir=tmp_path)
    visits = second.stream("visits", schema="city STRING", key="city")
    visits.group_by("city").aggregate("visited", n=count()).to("visited")
    orders = second.stream("orders", schema=ORDER, key="who")
    people = second.table("people", schema="who STRING, name STRING, team STRING", key="who")
    by_city = orders.group_by("city")
    by_city.aggregate(
        "by-city", n=count(), total=sum_("amount"), spread=variance("amount"), half=approx_percentile("amount", 0.5)
    ).to("by-city")
    orders.join(people, "who").to("named", key="who")
    plan = second.plan_upgrade(spark)
    assert {each.store: each.fate for each in plan.stores} == {
        "visited": Fate.NEW, "people": Fate.REBUILT, "by-city": Fate.EXTENDED, "by-who": Fate.LEFT,
    }  # fmt: skip
    assert {each.topic: each.fate for each in plan.sources} == {
        "visits": Fate.NEW, "orders": Fate.KEPT, "people": Fate.REBUILT,
    }  # fmt: skip
    assert [each.topic for each in plan.topics if each.fate is Fate.LEFT] == ["shop-by-who-changelog"]
    new = send(300)
    wanted = {
        city: {"n": len(_by(sent, "city")[city]), "total": sum(amounts), "spread": _variance(amounts)}
        for city, amounts in _by(new, "city").items()
    }

    def done() -> bool:
        found = _last(servers, "by-city")
        for row in found.values():
            row["spread"] = row.get("spread") and round(row["spread"], 6)
            row.pop("worst", None)
            row.pop("half", None)
        return found == wanted

    before = {each.relative_to(tmp_path / "shop") for each in (tmp_path / "shop").glob("?_?/by-city")}
    heard = Heard()
    run_until(second, spark, heard, lambda: done() and len(read(servers, "named")) == 700)
    assert not heard.failures
    assert done()
    after = {each.relative_to(tmp_path / "shop") for each in (tmp_path / "shop").glob("?_?/by-city")}
    assert len(before) == len(after) == 2
    assert not before & after, "stores have moved with their tasks' numbers"
    assert _last(servers, "visited") == {"c0": {"n": 1}}
    teams = [json.loads(one.value()).get("team") for one in read(servers, "named")]
    assert (teams.count(None), len(teams)) == (400, 700), "each row that came after has a team"
    assert second.plan_upgrade(spark).changed is False

    try:
        run_until(first, spark, Heard(), lambda: True)
    except ProgramError as error:
        assert "store 'by-who' can't go on: a program without it has run since" in str(error)
    else:
        raise AssertionError("what was left stands still")


def _by(rows: list[dict[str, Any]], column: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row["amount"])
    return found


def _results(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {"n": len(some), "worst": max(some)} for key, some in _by(rows, "city").items()}


def _variance(amounts: list[int]) -> float:
    mean = sum(amounts) / len(amounts)
    return round(sum((each - mean) ** 2 for each in amounts) / (len(amounts) - 1), 6)


def _last(servers: str, topic: str) -> dict[str, dict[str, Any]]:
    """The last result of each group."""
    found = {}
    for message in read(servers, topic):
        value = json.loads(message.value())
        found[value.pop("city", None) or value.pop("who", None)] = value
    return found
