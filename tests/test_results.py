"""Files of benchmarks: what is in them, and the charts that are made of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.broker.measures import ALL
from benchmarks.client import figures as client
from benchmarks.pipeline.figures import ROWS
from website import charts


def test_a_file_says_what_was_found_by_what_and_on_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "more" / "broker.json"
    parser = argparse.ArgumentParser()
    results.add_option(parser)
    monkeypatch.setattr("sys.argv", ["bench", "--quick", "--json", str(path)])
    results.save(parser.parse_args(["--json", str(path)]).json, {"figures": {"ready": {"Kohort": 0.25}}})
    found = json.loads(path.read_text())
    assert found["figures"] == {"ready": {"Kohort": 0.25}}
    assert found["command"].endswith(" --quick")
    assert found["machine"]["cores"] >= 1 and found["machine"]["memory_mib"] > 100
    assert len(found["date"]) == len("2026-01-01")
    results.save(None, {})  # nobody asked for one


def test_a_chart_has_the_figures_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"command": "python -m benchmarks.broker", "date": "2026-01-02", "machine": {"cores": 2, "processor": "P"}}
    ready = {"Kohort": 0.3012, "Apache Kafka": 3.6571}
    (tmp_path / "broker.json").write_text(json.dumps({**about, "figures": {"ready": ready}}))
    figures = tmp_path / "figures.toml"
    figures.write_text(
        '[[charts]]\ntitle = "A"\nunit = "s"\nbetter = "less"\ncommand = "make bench-broker"\n'
        'page = "broker.md#speed"\nresult = "broker.json"\nmeasure = "ready"\ndigits = 2\n'
    )
    monkeypatch.setattr(charts, "FOLDER", tmp_path)
    (chart,) = charts.charts(figures)
    assert chart.bars == {"Kohort": 0.3, "Apache Kafka": 3.66}
    assert chart.run == "Measured on 2026-01-02 with 2 cores of P: `python -m benchmarks.broker`."


def test_a_figure_of_no_digits_has_no_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"command": "c", "date": "2026-01-02", "machine": {"cores": 2, "processor": "P"}}
    (tmp_path / "broker.json").write_text(json.dumps({**about, "figures": {"rest": {"Kohort": 34.2}}}))
    figures = tmp_path / "figures.toml"
    figures.write_text(
        '[[charts]]\ntitle = "A"\nunit = "MiB"\nbetter = "less"\ncommand = "make bench-broker"\n'
        'page = "broker.md#speed"\nresult = "broker.json"\nmeasure = "rest"\n'
    )
    monkeypatch.setattr(charts, "FOLDER", tmp_path)
    (chart,) = charts.charts(figures)
    assert ">34 MiB<" in charts.svg(chart)


def faults(folder: Path, written: str) -> Iterator[str]:
    """What is wrong with files that are kept: a file that no chart shows says nothing to anybody."""
    for file in sorted(folder.glob("*.json")):
        missing = {"command", "date", "machine", "figures"} - set(json.loads(file.read_text()))
        yield from (f"{file.name} has no {name}" for name in sorted(missing))
        if f'result = "{file.name}"' not in written:
            yield f"no chart shows {file.name}"


def test_files_that_are_kept_are_whole_and_shown(tmp_path: Path) -> None:
    results.save(tmp_path / "whole.json", {"figures": {}})
    results.save(tmp_path / "unseen.json", {"figures": {}})
    (tmp_path / "torn.json").write_text('{"command": "c", "date": "2026-01-02", "machine": {}}')
    written = 'result = "torn.json"\nresult = "whole.json"\n'
    assert list(faults(tmp_path, written)) == ["torn.json has no figures", "no chart shows unseen.json"]
    assert list(faults(results.FOLDER, charts.FIGURES.read_text())) == []


def test_the_page_on_nexmark_has_the_figures_of_its_file() -> None:
    found = json.loads((results.FOLDER / "nexmark.json").read_text())["figures"]
    page = (results.FOLDER.parents[1] / "docs" / "nexmark.md").read_text()
    assert len(found) == 23
    for query, rates in found.items():
        ours = rates["Kohort"]
        line = [f"{ours:,.0f}"]
        for peer in ("Structured Streaming", "Kafka Streams"):
            if peer in rates:
                ratio = f"{ours / rates[peer]:.2f} ×"
                line.append(f"{rates[peer]:,.0f} ({f'**{ratio}**' if ours < rates[peer] else ratio})")
            else:
                line.append("")
        assert f"| {query} | {' | '.join(line)} |".replace("|  |", "| |") in page


@pytest.mark.parametrize(
    ("file", "rows"),
    [
        ("pipeline.json", ("start", "first", "rate", "each", "memory", "p50", "p99", "busy", "pause", "promotion")),
        ("pipeline-long.json", ("rate", "each", "memory")),
    ],
)
def test_the_page_on_sizing_has_the_figures_of_its_files(file: str, rows: tuple[str, ...]) -> None:
    found = json.loads((results.FOLDER / file).read_text())["figures"]
    page = (results.FOLDER.parents[1] / "docs" / "sizing.md").read_text()
    for name in rows:
        for title, figure in found[name].items():
            if (name, title) != ("start", "Structured Streaming"):  # which takes nothing in until its query is started
                assert f" {ROWS[name].form.format(figure).removesuffix(' records/s')} |" in page, (name, title)


def test_the_page_on_the_broker_has_the_figures_of_its_file() -> None:
    found = json.loads((results.FOLDER / "broker.json").read_text())["figures"]
    page = (results.FOLDER.parents[1] / "docs" / "broker.md").read_text()
    for measure in (each for each in ALL if not each.title.startswith(" ") and not each.key.endswith(" records/s")):
        ours, theirs = found[measure.key].values()
        shown = f"{measure.shown(ours)} | {measure.shown(theirs)} | {ours / theirs:.2f} | {measure.aim}"
        assert f"| {measure.title} | {shown} |".replace("|  |", "| |") in page


def test_the_page_on_the_client_has_the_figures_of_its_file() -> None:
    found = json.loads((results.FOLDER / "client.json").read_text())["figures"]
    page = (results.FOLDER.parents[1] / "docs" / "consumer.md").read_text()
    for broker in ("Kohort", "Apache Kafka"):
        for row in (each for each in client.ROWS if not each.key.endswith(" cpu")):
            title = row.title.format(members=50).strip()
            assert f"| {title} | {' | '.join(_of_libraries(found, row, broker))} |" in page


def _of_libraries(found: dict[str, dict[str, float]], row: client.Row, broker: str) -> Iterator[str]:
    """A figure for each; of loads with the processor time that a record takes."""
    for library, figure in found[f"{row.key}, {broker}"].items():
        if row.unit == "records/s":
            yield f"{round(figure, -3):,.0f} ({found[f'{row.key} cpu, {broker}'][library]:.1f} µs)"
        else:
            yield f"{figure:.{1 if row.unit.startswith('%') else 2}f} {row.unit}"


def test_the_page_on_choosing_has_the_figures_of_its_files() -> None:
    page = (results.FOLDER.parents[1] / "docs" / "choosing.md").read_text()
    assert [line for line in _choosing() if line not in page] == []


def _choosing() -> Iterator[str]:
    broker, client_, app, warm = (
        json.loads((results.FOLDER / f"{each}.json").read_text())["figures"]
        for each in ("broker", "client", "pipeline", "pipeline-long")
    )
    starts = zip(broker["ready"].values(), broker["idle"].values(), strict=True)
    yield f"| until it answers, memory at rest | {' | '.join(f'{s:.1f} s, {mib:.0f} MiB' for s, mib in starts)} |"
    consumed = broker["consume 1 KiB MB/s"].values()
    yield f"| consuming records of 1 KiB | {' | '.join(f'{each:.0f} MB/s' for each in consumed)} |"
    for title, work in (
        ("produce one by one", "produce"),
        ("consume one by one", "consume"),
        ("consume in batches", "consume_batch"),
    ):
        rates = client_[f"{work} 100, Kohort"].values()
        yield f"| {title}, 100 B | {' | '.join(f'{round(each, -3):,.0f}/s' for each in rates)} |"
    for title, found, shown in (
        ("until the first result", app["first"], lambda s: f"{s:.0f} s"),
        ("median latency at 5,000 records/s", app["p50"], lambda ms: f"{ms / 1000:.2f} s"),
        ("records/s on two cores, all there at the start", app["rate"], lambda rate: f"{round(rate, -3):,.0f}"),
        ("of three times as many, so that the JVM is warm", warm["rate"], lambda rate: f"{round(rate, -3):,.0f}"),
        ("memory at the peak", app["memory"], lambda mib: f"{mib / 1024:.1f} GiB"),
    ):
        ours, streams, spark = (shown(found[name]) for name in ("Kohort", "Kafka Streams", "Structured Streaming"))
        yield f"| {title} | {ours} | {streams} | not measured here | {spark} |"
