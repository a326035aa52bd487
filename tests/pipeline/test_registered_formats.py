"""Formats with a schema registry, and CSV, in a running application."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from kohort.spark import DeadLetter, StreamsApp, count
from kohort.testing.broker import Broker
from tests.spark.formats.fake_registry import fake_registry

from .applications import Heard, create_topics, producer, read, run_until

OLD: dict[str, Any] = {"type": "record", "name": "Bid", "fields": [{"name": "price", "type": "int"}]}
NEW: dict[str, Any] = {
    "type": "record",
    "name": "Bid",
    "fields": [{"name": "bidder", "type": "string", "default": "?"}, {"name": "price", "type": "long"}],
}


def written(schema_id: int, schema: Any, **row: Any) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


@pytest.mark.long
def test_registered_avro_and_csv_go_in_and_come_out(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "dear", "lines", "graves", "counts", "registered-counts")
    with fake_registry() as server:
        old, new = server.add("bids-value", OLD), server.add("bids-value", NEW)
        good = [written(old, OLD, price=5), written(new, NEW, bidder="ada", price=2**40), written(old, OLD, price=7)]
        bad = [b"{}", written(77, OLD, price=1)]
        sending = producer(servers)
        for value in [good[0], *bad, *good[1:]]:
            sending.produce("bids", value, b"key", partition=0)
        sending.flush()

        app = StreamsApp("registered", bootstrap_servers=servers, state_dir=tmp_path, schema_registry=server.registry())
        bids = app.stream("bids", format="avro", on_error=DeadLetter("graves"))
        bids.transform(lambda df: df.where("price > 5")).to("dear", format="avro")
        bids.to("lines", format="csv", delimiter=";")
        counts = bids.group_by("bidder").aggregate("n", n=count()).to("counts")
        counts.to("registered-counts", format="avro", key="bidder")
        heard = Heard()
        run_until(app, spark, heard, lambda: heard.through(len(good) + len(bad), moved=True))
        assert not heard.failures
        schema = json.loads(server.subjects["dear-value"][-1]["schema"])
        dear_id = server.subjects["dear-value"][-1]["id"]
        counted = server.subjects["registered-counts-value"][-1]

    values = [one.value() for one in read(servers, "dear")]
    assert all(value[:5] == b"\0" + dear_id.to_bytes(4) for value in values)
    rows: list[Any] = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in values]
    wanted = [{"bidder": "?", "price": 7}, {"bidder": "ada", "price": 2**40}]
    assert sorted(rows, key=str) == wanted
    assert sorted(one.value() for one in read(servers, "lines")) == [b'"?";5', b'"?";7', b'"ada";1099511627776']
    assert sorted(one.value() for one in read(servers, "graves")) == sorted(bad)
    last = {one.key(): one.value() for one in read(servers, "registered-counts")}
    assert all(value[:5] == b"\0" + counted["id"].to_bytes(4) for value in last.values())
    schema = json.loads(counted["schema"])
    groups: list[Any] = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in last.values()]
    assert sorted(groups, key=str) == [{"bidder": "?", "n": 2}, {"bidder": "ada", "n": 1}]
