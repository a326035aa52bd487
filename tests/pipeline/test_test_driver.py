"""Applications in the test driver, without a broker: what comes out, what is stored, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from docs.examples.flight_delays import flight_delays
from kohort.spark import (
    ApplicationError,
    DeadLetter,
    Drop,
    ProgramError,
    StreamsApp,
    avg,
    count,
    list_state,
    map_state,
    max_,
    value_state,
    window,
)
from kohort.spark.testing import TestDriver

from .test_process import OUTPUT, VISIT, seen
from .test_stream_joins import joined_app

NOWHERE = "127.0.0.1:1"
FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, time_hour TIMESTAMP"
FIVE = "2013-01-01T05:00:00.000Z"


def delays() -> StreamsApp:
    app = StreamsApp("delays-app", bootstrap_servers=NOWHERE)
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="time_hour")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    late = flights.transform(lambda df: df.where("dep_delay is not null")).join(airlines, "carrier")
    by_hour = late.group_by("origin", window("time_hour", "1 hour", grace="1 hour"))
    by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"), worst=max_("dep_delay")).to("delays-by-hour")
    return app


def flight(carrier: str, origin: str, delay: float | None, hour: int) -> dict[str, Any]:
    time = datetime(2013, 1, 1, hour, tzinfo=UTC)
    return {"carrier": carrier, "origin": origin, "dep_delay": delay, "time_hour": time}


def counts(schema: str = "word STRING", **source: Any) -> StreamsApp:
    app = StreamsApp("counts", bootstrap_servers=NOWHERE)
    app.stream("words", schema=schema, key="word", **source).group_by("word").aggregate("counts", n=count()).to("out")
    return app


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_go_through_a_join_and_a_repartition_into_windows(spark: SparkSession, partitions: int) -> None:
    with TestDriver(delays(), spark, partitions=partitions) as driver:
        driver.pipe("airlines", [{"carrier": "AA", "name": "American"}, {"carrier": "UA", "name": "United"}])
        driver.pipe("flights", [flight("AA", "JFK", 10.0, 5), flight("UA", "JFK", 20.0, 5), flight("X", "JFK", 9.0, 5)])

        group = {"n": 2, "mean": 15.0, "worst": 20.0}
        assert driver.output("delays-by-hour") == [{"window": FIVE, "origin": "JFK", **group}]
        assert driver.output("delays-by-hour") == []
        assert driver.store("delays") == {(FIVE, "JFK"): group}
        assert driver.store("airlines")["AA"] == {"carrier": "AA", "name": "American"}

        driver.delete("airlines", "AA")
        driver.pipe("flights", [flight("AA", "JFK", 90.0, 5), flight("UA", "LGA", 1.0, 8)])
        assert [(each["origin"], each["n"]) for each in driver.output("delays-by-hour")] == [("LGA", 1)]
        assert list(driver.store("airlines")) == ["UA"]


def test_the_example_of_the_docs_with_a_global_table_and_two_branches(spark: SparkSession) -> None:
    with TestDriver(flight_delays(NOWHERE), spark) as driver:
        hour = datetime(2013, 1, 1, 5, tzinfo=UTC)
        driver.pipe("airlines", [{"carrier": "AA", "name": "American"}])
        rainy = {"temp": 50.0, "wind_speed": 5.0, "precip": 0.1, "visib": 9.0}
        driver.pipe("weather", [{"origin": "JFK", "time_hour": hour, **rainy}])
        driver.pipe("flights", [flight("AA", "JFK", 61, 5), flight("AA", "LGA", 9, 5)])

        assert [each["n"] for each in driver.output("delays-by-hour")] == [1, 1]
        assert {each["sky"]: each["late"] for each in driver.output("delays-by-sky")} == {"rain": 1, "unknown": 0}
        assert driver.store("weather")["JFK", FIVE] == {"origin": "JFK", "time_hour": FIVE, **rainy}


def test_a_window_closes_when_its_stream_goes_on_and_what_comes_then_is_late(spark: SparkSession) -> None:
    app = StreamsApp("closing", bootstrap_servers=NOWHERE)
    words = app.stream("words", schema="word STRING, at TIMESTAMP", key="word", event_time="at")
    hourly = words.group_by("word", window("at", "1 hour", grace="10 minutes"))
    hourly.aggregate("hourly", n=count(), emit="close").to("out")
    with TestDriver(app, spark) as driver:
        driver.pipe("words", [{"word": "a", "at": "2013-01-01T05:10:00Z"}, {"word": "a", "at": "2013-01-01T05:59:00Z"}])
        driver.pipe("words", [{"word": "b", "at": "2013-01-01T06:09:59Z"}])
        assert driver.output("out") == [] and driver.late == 0

        driver.pipe("words", [{"word": "b", "at": "2013-01-01T06:10:00Z"}])
        assert driver.output("out") == [{"window": FIVE, "word": "a", "n": 2}]
        driver.pipe("words", [{"word": "a", "at": "2013-01-01T05:30:00Z"}])
        assert driver.output("out") == [] and driver.late == 1


def test_records_get_the_time_of_a_clock_that_the_test_moves(spark: SparkSession) -> None:
    app = StreamsApp("ticking", bootstrap_servers=NOWHERE)
    app.stream("words", schema="word STRING, _timestamp TIMESTAMP").to("out")
    with TestDriver(app, spark, now=datetime(2013, 1, 1)) as driver:
        driver.pipe("words", [{"word": "a"}])
        driver.advance(timedelta(minutes=1))
        driver.advance(0.5)
        driver.pipe("words", [{"word": "b"}])
        driver.pipe("words", [{"word": "c"}, {"word": "d"}], at=[datetime(2014, 1, 1), 7])
        rows = driver.output("out")
        assert [each["_timestamp"] for each in rows] == [
            "2013-01-01T00:00:00.000Z", "2013-01-01T00:01:00.500Z", "2014-01-01T00:00:00.000Z",
            "1970-01-01T00:00:00.007Z",
        ]  # fmt: skip
        assert rows.records["timestamp"].cast(pa.int64()).to_pylist()[-1] == 7
        assert driver.now == datetime(2013, 1, 1, 0, 1, 0, 500_000, UTC)
        with pytest.raises(ValueError, match="time goes on"):
            driver.advance(-1)


def test_rows_are_given_and_taken_as_arrow_and_as_dataframes(spark: SparkSession) -> None:
    rows = [{"word": "a"}, {"word": "b"}, {"word": "a"}]
    table = pa.Table.from_pylist(rows)
    with TestDriver(counts(), spark) as driver:
        for given in (rows, table, table.to_batches()[0], spark.createDataFrame(table), pd.DataFrame(rows)):
            driver.pipe("words", given)
        out = driver.output("out")
        assert out[-2:] == [{"word": "a", "n": 10}, {"word": "b", "n": 5}]
        assert out.to_arrow().to_pylist() == out
        assert max(out.to_df().collect()).asDict() == {"word": "b", "n": 5}
        assert driver.store("counts").to_arrow().to_pylist() == [{"word": "a", "n": 10}, {"word": "b", "n": 5}]


def test_what_was_written_is_read_in_one_epoch_when_the_test_says_so(spark: SparkSession) -> None:
    with TestDriver(counts(), spark) as driver:
        for _ in range(3):
            driver.pipe("words", [{"word": "a"}], step=False)
        assert driver.output("out") == []
        driver.step()
        assert driver.output("out") == [{"word": "a", "n": 3}]


def test_bad_records_are_left_out_and_counted_or_buried(spark: SparkSession) -> None:
    app = StreamsApp("careful", bootstrap_servers=NOWHERE, on_error=Drop())
    app.stream("buried", schema="n BIGINT", on_error=DeadLetter("graves")).to("out")
    app.stream("dropped", schema="n BIGINT").to("out")
    with TestDriver(app, spark) as driver:
        driver.pipe("buried", [{"n": 1}, b"{", {"n": "many"}], key="k")
        driver.pipe("dropped", [b"\xff", {"n": 2}])
        assert driver.output("out") == [{"n": 1}, {"n": 2}]
        assert driver.dropped == {"unreadable": 3}
        (first, second) = driver.output("graves")
        assert (first["value"], first["key"], first["topic"], first["offset"]) == (b"{", b"k", "buried", 1)
        assert second["value"] == b'{"n":"many"}' and second["error"]


def test_a_bad_record_stops_the_application_and_says_which_row_it_is(spark: SparkSession) -> None:
    with TestDriver(counts(), spark) as driver:
        driver.pipe("words", [{"word": "a"}])
        with pytest.raises(ApplicationError, match=r"words-0 at offset 2: ") as stopped:
            driver.pipe("words", [{"word": "a"}, b"{"])
        assert stopped.value.__notes__ == ["topic 'words', row 1 of what was piped last"]
        assert driver.store("counts") == {"a": {"n": 1}}
        with pytest.raises(ApplicationError, match=r"has stopped before: .*words-0"):
            driver.pipe("words", [{"word": "a"}])


def test_a_function_that_fails_is_an_error_of_the_test(spark: SparkSession) -> None:
    app = StreamsApp("failing", bootstrap_servers=NOWHERE)

    def halves(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            raise LookupError(f"nothing to halve in {batch.num_rows} rows")
        yield from ()

    def transform(df: DataFrame) -> DataFrame:
        return df.mapInArrow(halves, "n BIGINT")

    app.stream("numbers", schema="n BIGINT").transform(transform).to("out")
    with (
        TestDriver(app, spark) as driver,
        pytest.raises(ApplicationError, match="epoch of subtopology 0 failed: LookupError: nothing to halve in 2 rows"),
    ):
        driver.pipe("numbers", [{"n": 1}, {"n": 2}])


def test_keys_of_several_columns_and_numbers_for_times(spark: SparkSession) -> None:
    app = StreamsApp("keyed", bootstrap_servers=NOWHERE)
    schema = "shop INT, at TIMESTAMP, sold DECIMAL(6,2)"
    sales = app.stream("sales", schema=schema, key=("shop", "at"), timestamp_format="timestamp_millis")
    sales.group_by("shop", "at").aggregate("sold", n=count(), most=max_("sold")).to("out")
    with TestDriver(app, spark, partitions=4) as driver:
        at = datetime(2013, 1, 1, tzinfo=UTC)
        driver.pipe("sales", [{"shop": 1, "at": at, "sold": "1.50"}, {"shop": 1, "at": 1_356_998_400_000, "sold": 2}])
        ((key, value),) = driver.store("sold").items()
        assert key[0] == 1 and value["n"] == 2 and float(value["most"]) == 2
        assert driver.records("sales")["key"].to_pylist() == [b'{"shop":1,"at":"2013-01-01T00:00:00.000000Z"}'] * 2
        assert driver.dropped == {}


def test_rows_go_to_topics_that_a_column_names_with_headers(spark: SparkSession) -> None:
    """Topics of any name are there as soon as a row names them."""
    app = StreamsApp("named", bootstrap_servers=NOWHERE)
    words = app.stream("words", schema="word STRING, topic STRING", headers=True, on_error=Drop())
    words.to(column="topic", key="word", headers="_headers", tombstone="word = 'gone'")
    with TestDriver(app, spark=spark) as driver:
        trace = [{"key": "trace", "value": b"1"}]
        rows = [{"word": "a", "topic": "x", "_headers": trace}, {"word": "gone", "topic": "x"}, {"word": "b"}]
        driver.pipe("words", [*rows, {"word": "c", "topic": "no topic"}, {"word": "d", "topic": "y"}])
        found = driver.output("x")
        assert found == [{"word": "a"}, {"key": b"gone"}]
        assert found.records["headers"].to_pylist() == [trace, []]
        assert driver.output("y") == [{"word": "d"}]
        assert driver.dropped == {"no topic": 2}
        with pytest.raises(ValueError, match="'z'"):
            driver.output("z")


def test_functions_keep_state_and_set_timers(spark: SparkSession) -> None:
    app = StreamsApp("processing", bootstrap_servers=NOWHERE)
    visits = app.stream("visits", schema=VISIT, event_time="at", key="user").group_by("user")
    states = {
        "totals": value_state("total BIGINT"),
        "log": list_state("page STRING"),
        "pages": map_state("page STRING", "times BIGINT"),
    }
    visits.process("sums", seen, output=OUTPUT, timers=True, states=states).to("seen", key="user")

    def visit(user: str, page: str, n: int, at: str) -> dict[str, Any]:
        return {"user": user, "page": page, "n": n, "at": f"2013-01-01T00:{at}Z"}

    with TestDriver(app, spark) as driver:
        driver.pipe(
            "visits", [visit("ann", "a", 1, "00:00"), visit("bob", "b", 2, "00:01"), visit("ann", "c", 3, "00:02")]
        )
        assert [(each["user"], each["total"], each["fired"]) for each in driver.output("seen")] == [
            ("ann", 4, ""), ("bob", 2, ""),
        ]  # fmt: skip
        assert driver.store("sums-totals") == {"ann": {"total": 4}, "bob": {"total": 2}}
        assert driver.store("sums-pages")["ann", "c"] == {"page": "c", "times": 1}
        assert [each["rows"] for each in driver.store("sums-log").values()] == [
            [{"page": "a"}, {"page": "c"}], [{"page": "b"}],
        ]  # fmt: skip

        driver.pipe("visits", [visit("cid", "a", 1, "00:11")])
        assert {each["user"]: each["fired"] for each in driver.output("seen")} == {
            "ann": "00:10", "bob": "00:11", "cid": "",
        }  # fmt: skip


def test_streams_are_joined_by_time(spark: SparkSession, tmp_path: Path) -> None:
    def at(hour: int, minute: int) -> datetime:
        return datetime(2013, 1, 1, hour, minute, tzinfo=UTC)

    with TestDriver(joined_app(NOWHERE, tmp_path, "outer"), spark) as driver:
        driver.pipe("orders", [{"id": "a", "item": "tea", "at": at(1, 0)}, {"id": "c", "item": "jam", "at": at(1, 20)}])
        assert driver.output("paid") == []
        driver.pipe("payments", [{"order": "a", "paid": 1.0, "when": at(1, 30)}])
        assert [(each["id"], each["item"], each["paid"]) for each in driver.output("paid")] == [("a", "tea", 1.0)]

        driver.pipe("orders", [{"id": "d", "item": "egg", "at": at(5, 0)}], step=False)
        driver.pipe("payments", [{"order": "e", "paid": 4.0, "when": at(5, 0)}])
        assert [(each["id"], each["item"], each["paid"]) for each in driver.output("paid")] == [("c", "jam", None)]
        driver.pipe("orders", [{"id": "c", "item": "late", "at": at(1, 20)}])
        assert driver.output("paid") == [] and driver.late == 1


def test_text_goes_through_topics_in_the_middle(spark: SparkSession) -> None:
    app = StreamsApp("split", bootstrap_servers=NOWHERE)
    lines = app.stream("lines", format="string")
    lines.transform(lambda df: df.select(F.explode(F.split("value", " ")).alias("value"))).to("words", format="string")
    words = app.stream("words", format="string")
    words.group_by("value").aggregate("counts", n=count()).to("out")
    with TestDriver(app, spark, partitions={"lines": 2, "words": 3}) as driver:
        driver.pipe("lines", ["a b a", "b a"])
        assert driver.store("counts") == {"a": {"n": 3}, "b": {"n": 2}}
        assert [each["value"] for each in driver.output("words")] == ["a", "b", "a", "b", "a"]
        assert set(driver.records("words")["partition"].to_pylist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("topic", "rows", "given", "said"),
    [
        ("word", [], {}, r"no topic 'word'; the application reads: words"),
        (
            "words",
            [{"word": "a"}, {"wort": "b"}],
            {},
            r"topic 'words', row 1: there is no column 'wort'; there are word",
        ),
        ("words", [3], {}, r"topic 'words', row 0: 3 is neither a dict"),
        ("words", {"word": "a"}, {}, r"topic 'words': rows are a list"),
        ("words", [{"word": "a"}], {"key": ["a", "b"]}, r"topic 'words': key= has 2 for 1 rows"),
        ("words", [{"word": "a"}], {"at": [1, 2]}, r"topic 'words': at= has 2 for 1 rows"),
        ("words", [{"word": "a"}], {"partition": 1}, r"topic 'words': partition=1, but it has 1"),
        ("words", [{"word": 7}], {}, r"topic 'words': no key can be made of column 'word'"),
    ],
)
def test_rows_that_cannot_be_say_which_and_why(
    spark: SparkSession, counting: TestDriver, topic: str, rows: Any, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        counting.pipe(topic, rows, **given)


def test_what_is_not_there_says_what_is(counting: TestDriver) -> None:
    with pytest.raises(ValueError, match="no topic 'words'; the application writes: out"):
        counting.output("words")
    with pytest.raises(ValueError, match="no store 'out'; the application has: counts"):
        counting.store("out")
    with pytest.raises(ValueError, match=r"no topic 'x'; there: .*counts-changelog"):
        counting.records("x")


def test_a_driver_is_of_no_use_before_and_after(spark: SparkSession) -> None:
    driver = TestDriver(counts(), spark)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="enter it with `with`"):
            driver.step()
        driver.close()
    with pytest.raises(ValueError, match="'words' can't have 0 partitions"), TestDriver(counts(), spark, partitions=0):
        pass
    with pytest.raises(ValueError, match="no topic 'wörds'"), TestDriver(counts(), spark, partitions={"wörds": 2}):
        pass
    with (
        pytest.raises(ProgramError, match="equally many partitions"),
        TestDriver(delays(), spark, partitions={"flights": 2}),
    ):
        pass


@pytest.fixture(scope="module")
def counting(spark: SparkSession) -> Iterator[TestDriver]:
    with TestDriver(counts(), spark) as driver:
        yield driver
