"""Dashboards are whole, and they and the alerts ask for what brokers and instances expose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.conftest import Scrapes
from tests.deploy.promql import (
    DASHBOARDS,
    OF_THE_SCRAPE,
    RULES,
    exposed,
    labels_of,
    metrics_of,
    recorded,
    rules_of,
    wrong,
)
from tests.deploy.test_alerts import promtool

UNITS: Final = {"none", "short", "s", "bytes", "Bps", "percentunit", "reqps", "rps", "wps", "ops"}
"""Names of Grafana's."""

VARIABLES: Final = {"$__rate_interval": "5m", "$job": ".*", "$instance": ".*", "$api": ".*", "$application": ".*"}

of_each_dashboard = pytest.mark.parametrize("file", DASHBOARDS, ids=lambda path: path.stem)


def panels(dashboard: Any) -> list[dict[str, Any]]:
    """Those that show something."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def targets(dashboard: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each query with its panel."""
    return ((panel, target) for panel in panels(dashboard) for target in panel["targets"])


def queries(dashboard: Any) -> list[str]:
    """The expressions, as Grafana asks Prometheus."""
    return [filled(target["expr"]) for _, target in targets(dashboard)]


def filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_there_are_two() -> None:
    assert [file.stem for file in DASHBOARDS] == ["kohort-applications", "kohort-broker"]


@of_each_dashboard
def test_a_dashboard_can_be_imported(file: Path) -> None:
    """It knows neither the data source nor the folder, nor a number that another Grafana has given."""
    dashboard = json.loads(file.read_text())
    assert (dashboard["id"], dashboard["uid"]) == (None, file.stem)
    assert dashboard["schemaVersion"] >= 39
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert names[0] == "datasource"
    used = set(re.findall(r"\$(?:\{)?(\w+)", json.dumps(dashboard))) - {"__rate_interval"}
    assert used == set(names)
    asked = [*panels(dashboard), *(target for _, target in targets(dashboard)), *dashboard["templating"]["list"][1:]]
    assert {each["datasource"]["uid"] for each in asked} == {"${datasource}"}


@of_each_dashboard
def test_a_panel_says_what_it_shows_and_in_which_unit(file: Path) -> None:
    dashboard = json.loads(file.read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles) > 20
    for panel in panels(dashboard):
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGH")[: len(panel["targets"])]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


@of_each_dashboard
def test_panels_do_not_lie_on_each_other(file: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(file.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


@of_each_dashboard
def test_every_expression_parses(file: Path, tmp_path: Path) -> None:
    """As rules that record them would."""
    rules = [
        {"record": f"query:{number}", "expr": expression}
        for number, expression in enumerate(queries(json.loads(file.read_text())))
    ]
    written = tmp_path / "queries.yml"
    written.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", written)


@of_each_dashboard
def test_a_dashboard_asks_for_what_is_exposed(file: Path, scrapes: Scrapes) -> None:
    there = exposed(*scrapes) | {"up": set()}
    dashboard = json.loads(file.read_text())
    found = [
        f"{panel['title']}: {each}" for panel, target in targets(dashboard) for each in wrong(target["expr"], there)
    ]
    for variable in dashboard["templating"]["list"][1:]:
        expression, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
        found += wrong(f"sum by ({label}) ({expression})", there)
    assert not found, "\n".join(found)


@of_each_dashboard
def test_a_legend_names_labels_that_the_query_leaves(file: Path) -> None:
    for panel, target in targets(json.loads(file.read_text())):
        expression = target["expr"]
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        left = labels_of(expression) if " by (" in expression else named
        assert named <= left, f"{panel['title']}: {named - left}"


@pytest.mark.parametrize("file", RULES, ids=lambda path: path.name)
def test_alerts_ask_for_what_is_exposed(file: Path, scrapes: Scrapes) -> None:
    there = exposed(*scrapes) | recorded(RULES) | {"up": set()}
    found = [f"{rule.get('alert')}: {each}" for rule in rules_of(file) for each in wrong(rule["expr"], there)]
    for rule in rules_of(file):
        told = set(re.findall(r"\$labels\.(\w+)", str(rule.get("annotations"))))
        had = OF_THE_SCRAPE.union(*(there[name] for name in metrics_of(rule["expr"])))
        found += [f"{rule['alert']}: no label {name} to tell" for name in told - had]
    assert not found, "\n".join(found)


def test_what_is_not_there_is_found() -> None:
    there = {"kohort_groups": {"state"}}
    expression = 'sum by (state, colour) (kohort_groups{state="Stable",shape=~"a|b"}) / kohort_gruops > 0'
    assert metrics_of(expression) == {"kohort_groups", "kohort_gruops"}
    assert wrong(expression, there) == [
        "no metric kohort_gruops",
        f"no label colour in {expression}",
        f"no label shape in {expression}",
    ]


def test_each_metric_of_the_docs_is_exposed(scrapes: Scrapes) -> None:
    there = exposed(*scrapes)
    docs = Path(__file__).parents[2] / "docs"
    section = (docs / "broker.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"\bkohort_[a-z_]+\b", section))
    named |= set(re.findall(r"^\| `(kafka_streams_[a-z_]+)`", (docs / "queries.md").read_text(), re.MULTILINE))
    named |= set(re.findall(r"`(kohort_queue_[a-z_]+)\{", (docs / "queues.md").read_text()))
    assert not {name for name in named if name not in there and f"{name}_bucket" not in there}
    ours = {
        re.sub("_(bucket|count|sum)$", "", name) for name in there if name.startswith(("kohort_", "kafka_streams_"))
    }
    assert not ours - named, ours - named
