"""What `describe` says of a program, as a whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, count, session, value_state

EVENT = "user STRING, page STRING, score INT, at TIMESTAMP"


def unchanged(rows: Any, state: Any) -> Any:
    return rows.select(["user", "page"])


def a_program() -> StreamsApp:
    app = StreamsApp("all")
    events = app.stream("events", schema=EVENT, key="user", event_time="at")
    once = events.dedupe("user", "page", within="1 hour")
    once.group_by("user").process("marks", unchanged, output="user STRING, page STRING",
                                  states={"seen": value_state("n INT")}).to("marked", key="user")  # fmt: skip
    once.group_by("user").top(3, by="score").to("best", key=("user", "rank"))
    once.group_by("user").latest_by("score").to("latest").to(column="page", key="user")
    visits = once.group_by("user", session("at", "30 minutes", grace="5 minutes", retention="1 hour"))
    visits.aggregate("visits", n=count()).to("visits").to("visits-csv", format="csv")
    users = app.table("users", schema="user STRING, team STRING", key="user")
    addresses = app.table("addresses", schema="user STRING, city STRING", key="user")
    teams = app.table("teams", schema="team STRING, lead STRING", key="team")
    placed = users.select("user", "team").join(addresses.select("user", "city"))
    placed.join(teams.select("team", "lead"), on={"team": "team"}, how="left").to("people")
    prices = app.table("prices", schema="user STRING, price INT", key="user")
    events.join_as_of(prices, history="1 day", grace="1 minute").to("priced", key="user")
    return app


def test_a_program_of_everything(spark: SparkSession) -> None:
    """Beside description.txt, but for the lines of the program."""
    described = re.sub(r" \(\S+test_descriptions\.py, line \d+\)$", "", a_program().describe(spark), flags=re.MULTILINE)
    assert described.rstrip() == Path(__file__).with_name("description.txt").read_text().rstrip()
