"""Nexmark's benchmark compares results with the batch's, and shows who was how fast."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

from benchmarks.nexmark import figures, queries
from benchmarks.nexmark.batch import QUERIES
from benchmarks.nexmark.bench import QueryResults
from benchmarks.nexmark.contenders import CONTENDERS
from benchmarks.nexmark.events import CLOSING_MS, CYCLE, closing, whole
from benchmarks.nexmark.results import Gathered
from benchmarks.nexmark.streamed import streamed
from benchmarks.pipeline import contenders, tree
from benchmarks.pipeline.figures import Found
from benchmarks.pipeline.measures import Throughput
from benchmarks.pipeline.watcher import result_of

COUNTS = pa.table({"auction": [1, 2], "mean": [0.5, 2.0], "best": [{"price": 3}, {"price": 4}]})


def values(*rows: dict[str, Any]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def gathered(expected: pa.Table, keys: Sequence[str], *rows: dict[str, Any]) -> Gathered:
    results = Gathered(expected, keys)
    if rows:
        results.take(values(*rows))
    return results


ONE = {"auction": 1, "mean": 0.5 + 1e-15, "best": {"price": 3}, "unasked": "for"}
TWO = {"auction": 2, "mean": 2.0, "best": {"price": 4}}


def test_the_last_result_of_a_key_counts() -> None:
    results = gathered(COUNTS, ["auction"], ONE | {"mean": 7.0}, TWO, ONE)
    assert results.differences() == []
    results.take(values(TWO | {"best": {"price": 5}}))
    (difference,) = results.differences()
    assert "'price': 5}" in difference and "'price': 4}" in difference
    results.take(values(TWO))
    assert results.differences() == []


def test_without_keys_every_row_counts_in_any_order() -> None:
    rows = pa.table({"auction": [1, 1, 2], "url": ["a", "a", "b"]})
    good = ({"auction": 2, "url": "b"}, {"auction": 1, "url": "a"}, {"auction": 1, "url": "a"})
    assert gathered(rows, [], *good).differences() == []
    assert gathered(rows, [], *good[:2]).differences() == ["2 results, not 3"]
    twice = gathered(rows, [], good[0], *good[:2]).differences()
    assert twice == ["{'auction': 2, 'url': 'b'}, not {'auction': 1, 'url': 'a'}"]


def test_a_result_that_is_deleted_is_no_more() -> None:
    results = gathered(COUNTS.slice(0, 1), ["auction"], ONE, TWO)
    results.take([result_of(f'{{"auction":{TWO["auction"]}}}'.encode(), None)])
    assert results.differences() == []


def test_windows_of_the_clock_are_compared_by_what_they_add_up_to() -> None:
    """The last result of each window counts, however many windows there were."""
    expected = pa.table({"window": [0, 0], "bidder": [1, 2], "n": [7, 3]})
    results = Gathered(expected, ["bidder", "window"], clock="window")
    results.take(values(*({"window": at, "bidder": one, "n": n} for at, one, n in ((5, 1, 2), (5, 2, 3), (5, 1, 4)))))
    assert results.differences() == ["{'bidder': 1, 'n': 4}, not {'bidder': 1, 'n': 7}"]
    results.take(values({"window": 6, "bidder": 1, "n": 3}))
    assert results.differences() == []


def test_results_about_the_closing_events_do_not_count() -> None:
    """Who gives results as they grow has such, and who gives them when time has passed them hasn't."""
    window = pa.array([0], pa.timestamp("us", "UTC"))
    expected = pa.table({"window": window, "n": [7]})
    results = Gathered(expected, ["window"], until=("window", CLOSING_MS // 2))
    results.take(values({"window": "1970-01-01T00:00:00.000Z", "n": 7}, {"window": "1970-01-01T01:00:00.000Z", "n": 1}))
    assert results.differences() == []


def test_closing_events_come_long_after_the_others_and_have_nothing_to_do_with_them() -> None:
    every, last = whole(CYCLE), closing(CYCLE)
    for kind in ("persons", "auctions", "bids"):
        before, after = getattr(every, kind), getattr(last, kind)
        assert after.schema == before.schema and after.num_rows == 1
        waits = pc.subtract(after["dateTime"][0], pc.max(before["dateTime"])).as_py()
        assert timedelta(milliseconds=CLOSING_MS) <= waits < timedelta(milliseconds=CLOSING_MS + 100)
    (person,), (auction,), (bid,) = (getattr(last, kind).to_pylist() for kind in ("persons", "auctions", "bids"))
    assert len({person["id"], auction["seller"]}) == len({auction["id"], bid["auction"]}) == 2
    assert auction["id"] > pc.max(every.auctions["id"]).as_py()


def test_what_waits_for_time_to_pass_has_closing_events() -> None:
    """An append mode with an aggregate, or sessions, gives nothing before."""
    waiting = {name for name in QUERIES if (asked := streamed(name)).watermark and "GROUP BY" in asked.sql}
    assert waiting == {name for name, query in QUERIES.items() if query.closing}
    assert all(query.begins in (None, *query.keys) for query in QUERIES.values())


def test_of_many_differences_some_are_told() -> None:
    expected = pa.table({"auction": range(9)})
    results = gathered(expected, [], *({"auction": number + 9} for number in range(9)))
    assert len(results.differences()) == 6
    assert results.differences()[-1] == "and 4 more"
    assert gathered(expected, []).differences() == ["there are no results, not 9"]


def test_a_column_of_another_type_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        gathered(COUNTS, [], ONE | {"auction": "one"})


def test_results_that_replace_each_other_count_once_they_are_the_batchs() -> None:
    with QueryResults("localhost:1", "results", 1, Gathered(COUNTS, ["auction"]), quiet=0) as results:
        results.take(values(ONE))
        results.poll(0)
        assert results.counted == 0
        results.take(values(TWO))
        results.poll(0)
        assert results.counted == 2
        assert results.differences(COUNTS) == []


def test_what_a_contender_says_there_is() -> None:
    for contender in CONTENDERS:
        assert set(contender.cases) <= set(QUERIES)
    assert all(callable(queries.program(name)) for name in queries.NAMES)


def test_kafka_streams_has_a_program_for_each_query_that_it_is_asked() -> None:
    (program,) = contenders.PROGRAMS.parent.glob("java/streams/**/Nexmark.java")
    (streams,) = (contender for contender in CONTENDERS if contender.name == "streams")
    assert re.findall(r'"(q\d+)"', program.read_text()) == list(streams.cases)


def measured(seconds: float) -> Found:
    return Found(throughput=Throughput(1_000, 1.0, seconds, 3.0, 1.0, 900.0, 10, [], [], 12.0))


def test_each_query_is_shown_with_who_answered_it() -> None:
    found = {
        "q0": {"kohort": measured(0.5), "structured": measured(1.0)},
        "q17": {"kohort": measured(1.0), "structured": measured(4.0)},
        "q18": {"kohort": measured(1.0), "structured": measured(0.0)},
        "q19": {"kohort": Found(failures=["throughput: TimeoutError"])},
    }
    said = io.StringIO()
    Console(file=said, width=160).print(figures.table(found, CONTENDERS, 1_000))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.getvalue().splitlines() if "│" in line]
    assert rows == [
        ["q0  Pass through", "Kohort", "2,000", "", "3,000.0", "900", "12.0", "10", "yes"],
        ["", "Structured Streaming", "1,000", "2.00 ×", "3,000.0", "900", "12.0", "10", "yes"],
        ["q17  Auction statistics", "Kohort", "1,000", "", "3,000.0", "900", "12.0", "10", "yes"],
        ["", "Structured Streaming", "250", "4.00 ×", "3,000.0", "900", "12.0", "10", "yes"],
        [
            f"q18  {QUERIES['q18'].title.partition(':')[0]}",
            "Kohort",
            "1,000",
            "",
            "3,000.0",
            "900",
            "12.0",
            "10",
            "yes",
        ],
        ["", "Structured Streaming", "–", "", "3,000.0", "900", "12.0", "10", "yes"],
        ["q19  Auction top 10", "Kohort", "", "", "", "", "", "", "failed: throughput"],
        ["the median query", "Structured Streaming", "", "3.00 ×", "", "", "", "", ""],
    ]


def wrong(seconds: float) -> Found:
    return Found(throughput=Throughput(1_000, 1.0, seconds, 3.0, 1.0, 900.0, 10, ["9 results, not 10"], [], 12.0))


def test_rates_of_results_that_are_not_the_batchs_are_marked_and_left_out_of_the_median() -> None:
    found = {
        "q0": {"kohort": measured(0.5), "structured": measured(1.0), "streams": wrong(0.1)},
        "q1": {"kohort": wrong(0.01), "structured": measured(9.0)},
        "q2": {"kohort": measured(1.0), "structured": wrong(9.0)},
        "q3": {"kohort": measured(1.0), "structured": measured(4.0)},
    }
    said = io.StringIO()
    Console(file=said, width=180).print(figures.table(found, CONTENDERS, 1_000))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.getvalue().splitlines() if "│" in line]
    assert [(row[1], row[3], row[-1]) for row in rows if row[3]] == [
        ("Structured Streaming", "2.00 ×", "yes"),
        ("Kafka Streams", "(0.20 ×)", "9 results, not 10"),
        ("Structured Streaming", "(900.00 ×)", "yes"),
        ("Structured Streaming", "(9.00 ×)", "9 results, not 10"),
        ("Structured Streaming", "4.00 ×", "yes"),
        ("Structured Streaming", "3.00 ×", ""),
    ]


def test_a_file_has_what_the_table_has_without_epochs() -> None:
    found = {"q0": {"kohort": measured(0.5), "structured": wrong(0.1), "streams": Found(failures=["it broke"])}}
    kept = figures.measured(found, CONTENDERS)
    assert list(kept["q0"]) == ["Kohort", "Structured Streaming"]
    ours = {"processor": 3000.0, "memory": 900, "state": 12.0, "results": 10, "differences": [], "epochs": 0}
    assert kept["q0"]["Kohort"] == ours
    assert kept["q0"]["Structured Streaming"] == ours | {"differences": ["9 results, not 10"]}


def test_state_is_what_folders_have_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_bytes(bytes(3 << 20))
    (tmp_path / "stores" / "0_0").mkdir(parents=True)
    (tmp_path / "stores" / "0_0" / "table").write_bytes(b"x" * (1 << 20))
    assert tree.disk_mebibytes(tmp_path) == pytest.approx(1, abs=0.1)
