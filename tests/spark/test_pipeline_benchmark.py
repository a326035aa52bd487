"""The pipeline's benchmark keeps what it has measured, whatever becomes of the rest."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks.pipeline import __main__ as program
from benchmarks.pipeline import auctions, contenders, figures, tree
from benchmarks.pipeline.cases import Auctions, Flights
from benchmarks.pipeline.contenders import Contender, Job, RealTime, Structured
from benchmarks.pipeline.measures import LARGE, Epochs, Latency, Pause, Reading, Start, Throughput, large_epochs
from benchmarks.pipeline.run import Run
from tests.spark.monitoring.events import epoch


class One(Contender):
    name, title = "kohort", "Kohort"
    measures = (*Contender.measures, "epochs", "reading")

    def command(self, job: Job) -> list[str]:
        raise AssertionError("nothing is started")


class Other(One):
    name, title = "structured", "Structured Streaming"
    measures = (*Contender.measures, "reading")


class Unprepared(One):
    name, title = "quix", "quixstreams"

    def prepare(self) -> None:
        raise OSError("no network")


def throughput(*differences: str) -> Throughput:
    return Throughput(1_000, 1.0, 0.5, 3.0, 1.0, 900.0, 10, list(differences), [epoch(1.0, ["0_0"]), epoch(2.0)])


class Bench:
    """Has the outcome of each measure: what it gives, or raises."""

    def __init__(self, **outcomes: Any) -> None:
        self.outcomes = outcomes

    def __getattr__(self, measure: str) -> Callable[[Contender], Any]:
        def taken(contender: Contender) -> Any:
            outcome = self.outcomes[measure]
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return taken


def run_of(*contenders: Contender) -> tuple[Run, io.StringIO]:
    said = io.StringIO()
    return Run(contenders, Console(file=said, width=160)), said


def test_a_measure_that_fails_costs_no_other(tmp_path: Path) -> None:
    made, said = run_of(One(), Other(), Unprepared())
    made.prepare(lambda _: None)
    bench: Any = Bench(
        throughput=throughput(),
        latency=TimeoutError("nothing for 300 s: [/flights-0]"),  # which isn't rich's markup
        epochs=Epochs([], []),
        reading=Reading(1_000, 5_000, 2.0, [0.5, 0.25, 0.5]),
    )
    made.measure(bench, ("throughput", "latency", "epochs", "reading"))
    lines = said.getvalue().splitlines()
    assert lines[:3] == [
        "quixstreams, preparation: OSError: no network",
        "Kohort, throughput: 2,000 records/s",
        "Structured Streaming, throughput: 2,000 records/s",
    ]
    assert "Kohort, latency: TimeoutError: nothing for 300 s: [/flights-0]" in lines
    assert "Structured Streaming, reading: 2,000 records/s" in lines
    assert not any(line.startswith(("quixstreams, throughput", "Structured Streaming, epochs")) for line in lines)
    assert made.wrong
    made.report(Flights, 5_000, tmp_path / "figures.json")
    shown = said.getvalue()
    assert "failed: latency" in shown and "failed: preparation" in shown
    assert "≥ the connector: 1.00 ×" in shown
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["figures"]["rate"] == {"Kohort": 2_000, "Structured Streaming": 2_000}
    assert "p50" not in written["figures"] and written["machine"]["cores"] >= 1
    found = written["contenders"]
    assert found["kohort"]["throughput"]["records"] == 1_000
    assert found["structured"]["reading"]["seconds"] == [0.5, 0.25, 0.5]
    assert found["kohort"]["latency"] is None and "300 s" in found["kohort"]["failures"][0]


def test_what_took_no_time_is_shown_as_not_known() -> None:
    """Processes tell by clocks of their own when work began: it may have ended before, by what is seen of it."""
    made, said = run_of(One(), Other())
    bench: Any = Bench(throughput=replace(throughput(), seconds=0.0), pause=Pause(1.0, math.nan, None, [], 0.24))
    made.measure(bench, ("throughput", "pause"))
    made.report(Flights, 5_000, None)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.getvalue().splitlines() if "│" in line]
    shown = {row[0]: row[1:] for row in rows}
    assert shown["throughput"] == ["–", "–", "", ""]
    assert shown["before it"] == ["–", "–", "", ""]
    assert shown["median before it"] == ["240 ms", "240 ms", "≤ 300 ms", "met"]
    assert not made.wrong


def test_what_is_on_the_disk_is_counted_though_folders_go_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kept", "gone"):
        (tmp_path / "state" / name).mkdir(parents=True)
        (tmp_path / "state" / name / "rows").write_bytes(bytes(1 << 20))
    scandir = os.scandir

    def scanned(folder: str | int) -> Any:
        if isinstance(folder, str) and Path(folder).name == "gone":
            shutil.rmtree(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", scanned)
    assert 1 <= tree.disk_mebibytes(tmp_path) < 2


def test_groups_that_differ_make_it_wrong() -> None:
    made, said = run_of(One())
    bench: Any = Bench(throughput=throughput(), latency=Latency(0.1, 0.2, 1.0, ["('EWR', '2013') is missing"]))
    made.measure(bench, ("throughput",))
    assert not made.wrong
    made.measure(bench, ("latency",))
    assert made.wrong
    assert "Kohort, latency: ('EWR', '2013') is missing" in said.getvalue().splitlines()
    made.report(Flights, 5_000, None)
    assert "1 groups differ" in said.getvalue()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_found_until_an_interruption_is_kept(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(Bench):
        def latency(self, contender: Contender) -> Any:
            os.kill(os.getpid(), number)

    def measure(case: str, made: Run, options: Any, console: Console) -> None:
        bench: Any = Interrupted(throughput=throughput())
        made.measure(bench, options.only)

    file = tmp_path / "figures.json"
    monkeypatch.setattr(program, "CONTENDERS", (One(),))
    monkeypatch.setattr(program, "_measure", measure)
    monkeypatch.setattr("sys.argv", ["benchmark", "--contenders", "kohort", "--json", str(file)])
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a test runner may have replaced
    try:
        assert program.main() == 1
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    said = capsys.readouterr().out
    assert "interrupted" in said and "2,000 records/s" in said and "latency, median" not in said
    assert json.loads(file.read_text())["contenders"]["kohort"]["throughput"]["seconds"] == 0.5


def test_real_time_mode_runs_the_program_of_batches_with_another_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "connector", lambda: "a.jar")
    job = Job("localhost:9092", "realtime-0", "flights", "results", "/state")
    batches, real_time = Structured().command(job), RealTime().command(job)
    assert real_time[:2] == batches[:2]
    assert json.loads(real_time[2]) == {**json.loads(batches[2]), "real_time": "5 minutes"}


def test_a_start_is_judged_and_shown_phase_by_phase() -> None:
    said = io.StringIO()
    found = {"kohort": figures.Found(start=Start(7.0, 10.5, 20.0, {"a session": 4.0, "tasks": 7.0}, []))}
    for part in figures.report(found, [One()], Flights, 5_000):
        Console(file=said, width=160).print(part)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.getvalue().splitlines() if "│" in line]
    assert rows[:2] == [
        ["from the start until it processes", "7.0 s", "≤ 7 s", "met"],
        ["until the first result", "10.5 s", "≤ 10 s", "missed"],
    ]
    assert rows[-3:] == [
        ["a session", "4.0 s", "4.0 s"],
        ["tasks", "3.0 s", "7.0 s"],
        ["the first result", "3.5 s", "10.5 s"],
    ]


def cells(measured: Epochs) -> list[list[str]]:
    return [list(column.cells) for column in figures.costs(measured).columns]  # type: ignore[arg-type]


def test_large_epochs_are_judged_as_a_whole() -> None:
    """In Spark they are quick enough, with the transaction they aren't."""
    large = [epoch(at, records=300_000, took_ms=2_000, job_ms=1_000) for at in (1.0, 2.0, 3.0)]
    small = [epoch(1.0, ["0_0"], took_ms=400)]
    _, counts, whole, _, in_spark, _, _, met = cells(Epochs(small, large))
    assert counts == ["1", "3"]
    assert whole == ["400 ms", "150,000"]
    assert in_spark[1] == "300,000"
    assert met == [figures.MET, figures.MISSED]


def test_large_epochs_count_if_nothing_is_written_meanwhile() -> None:
    told = [epoch(at, records=records, took_ms=1000) for at, records in ((1.9, LARGE), (2, LARGE), (3, LARGE - 1))]
    told += [epoch(5, ["1_0"], LARGE, 1000), epoch(6, records=LARGE, took_ms=1000), epoch(6.1, records=LARGE)]
    assert [one.at for one in large_epochs(told, [(1, 3), (5, 6)])] == [2, 6]


def test_epochs_of_which_none_was_large_enough() -> None:
    _, counts, whole, _, _, _, _, met = cells(Epochs([], []))
    assert (counts, whole, met) == (["0", "0"], ["", ""], [figures.MISSED] * 2)


def test_bids_make_the_groups_that_they_are_said_to_make() -> None:
    groups = auctions.batch(20_000)
    assert 0.48 < np.isfinite(groups["bids"]).sum() / 20_000 < 0.50
    assert np.nansum(groups["bids"]) == 20_000
    assert np.nansum(groups["cheap"] + groups["middling"] + groups["dear"]) == 20_000
    prices = [price for part in auctions.bids(20_000) for price in part["price"].to_pylist()]
    assert np.nansum(groups["total"]) == sum(prices)
    assert (np.nanmin(groups["lowest"]), np.nanmax(groups["highest"])) == (min(prices), max(prices))


def test_results_of_bids_are_compared_with_the_batch() -> None:
    """In any order of groups, the last result of each counts; what is wrong, missing or too many is told."""
    expected = auctions.batch(100)
    places = [int(place) for place in np.flatnonzero(np.isfinite(expected["bids"]))]

    def result(place: int, **other: float) -> bytes:
        row = {name: float(expected[name][place]) for name in auctions.RESULTS} | other
        whole = {name: value if name == "mean" else int(value) for name, value in row.items()}
        day = datetime.fromtimestamp(auctions.START_MS / 1000, UTC) + timedelta(days=place % auctions.DAYS)
        auction = auctions.FIRST_AUCTION + place // auctions.DAYS
        return json.dumps({"auction": auction, "window": f"{day:%Y-%m-%d}T00:00:00.000Z", **whole}).encode()

    with auctions.AuctionResults("localhost:1", "results", 1, 100) as results:
        results.take([result(places[0], bids=7), *map(result, places[::-1])])
        assert results.counted == 100
        assert results.differences(expected) == []
        results.take([result(places[1], total=1.0)])
        assert results.counted == 100
        (difference,) = results.differences(expected)
        assert "'total': 1.0" in difference
    with auctions.AuctionResults("localhost:1", "results", 1, 100) as results:
        results.take([*map(result, places[1:]), result(places[0]).replace(b'"auction": 1', b'"auction": 900')])
        unknown, missing = results.differences(expected)
        assert unknown == "1 results are of no group"
        assert "'bids': nan" in missing


def test_auctions_have_aims_of_their_own() -> None:
    ours, theirs = throughput(), throughput()
    found = {"kohort": figures.Found(throughput=ours), "structured": figures.Found(throughput=theirs)}
    said = io.StringIO()
    for part in figures.report(found, [One(), Other()], Auctions, 5_000):
        Console(file=said, width=160).print(part)
    shown = said.getvalue()
    assert "≥ 1.5 × the faster: 1.00 ×" in shown and "≤ 1,536 MiB" in shown
    assert "Bids by auction and day" in shown and "steady rate" not in shown
