"""Files of benchmarks: what is in them, and the charts that are made of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks import results
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


def test_files_that_are_kept_are_whole_and_shown() -> None:
    """A file that no chart shows says nothing to anybody."""
    written = charts.FIGURES.read_text()
    for file in results.FOLDER.glob("*.json"):
        assert {"command", "date", "machine", "figures"} <= set(json.loads(file.read_text())), file.name
        assert f'result = "{file.name}"' in written, file.name
