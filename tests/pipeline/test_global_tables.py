"""What becomes of records of a global table that can't be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.spark import Drop, StreamsApp
from kohort.spark.errors import ApplicationError
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until


def test_they_are_left_out_and_counted_or_stop_the_application(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "airlines", "out")
    sending = producer(servers)
    for carrier, airline in (("AA", b'{"carrier":"AA","name":"American"}'), ("UA", b"{")):
        sending.produce("airlines", airline, key=carrier)
        sending.produce("flights", b'{"carrier":"%s"}' % carrier.encode(), key=carrier)
    sending.flush()

    def app(**options: object) -> StreamsApp:
        app = StreamsApp("named", bootstrap_servers=servers, state_dir=tmp_path)
        airlines = app.global_table("airlines", schema="carrier STRING, name STRING", key="carrier", **options)  # type: ignore[arg-type]
        app.stream("flights", schema="carrier STRING").join(airlines, "carrier", how="left").to("out")
        return app

    with pytest.raises(ApplicationError, match=r"can't be taken: airlines-\d at offset 0: .*say on_error="):
        run_until(app(), spark, Heard(), lambda: False)
    assert not read(servers, "out")

    heard = Heard()
    run_until(app(on_error=Drop()), spark, heard, lambda: len(read(servers, "out")) == 2)
    assert not heard.failures
    assert (heard.total("records", subtopology="globals"), heard.total("dropped", subtopology="globals")) == (2, 1)
    assert heard.total("dropped") == 1
