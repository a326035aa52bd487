"""The names and labels that expressions of PromQL use, and what is really exposed under them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Final

import yaml
from prometheus_client.parser import text_string_to_metric_families

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
RULES: Final = sorted((DEPLOY / "prometheus").glob("*.rules.yml"))
DASHBOARDS: Final = sorted((DEPLOY / "grafana").glob("*.json"))

OF_THE_SCRAPE: Final = frozenset({"job", "instance"})
"""Labels that Prometheus gives every series."""

OURS: Final = re.compile(
    r"\b(?:kohort|kafka_streams|process|application:kafka_streams)_[\w:]+|\bup\b|\bapplication:[\w:]+"
)
_SELECTOR: Final = re.compile(r"([a-zA-Z_][\w:]*)?\s*\{([^}]*)\}")
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')

Exposed = Mapping[str, Set[str]]
"""Labels by the name of a series."""


def exposed(*texts: bytes) -> dict[str, set[str]]:
    """What scrapes have: each family is there, its labels as far as it has samples."""
    found: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            if family.name.endswith("_created"):
                continue  # when a series began, which Prometheus' library adds
            suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "info": ("_info",)}
            for suffix in suffixes.get(family.type, ("",)):
                found[family.name + suffix] |= set()
            for sample in family.samples:
                found[sample.name] |= set(sample.labels)
    return dict(found)


def metrics_of(expression: str) -> set[str]:
    """The series that an expression reads; labels and texts aside."""
    bare = _GROUPING.sub(" ", re.sub(r"\{[^}]*\}", " ", expression))
    return set(OURS.findall(bare))


def labels_of(expression: str) -> set[str]:
    """The labels that it chooses or groups by."""
    matched = {label for _, inside in _SELECTOR.findall(expression) for label, _, _ in _MATCHER.findall(inside)}
    grouped = {name.strip() for inside in _GROUPING.findall(expression) for name in inside.split(",") if name.strip()}
    return matched | grouped


def wrong(expression: str, there: Exposed) -> list[str]:
    """What of an expression isn't exposed."""
    used = metrics_of(expression)
    unknown = sorted(used - there.keys())
    labels = set().union(OF_THE_SCRAPE, *(there.get(name, ()) for name in used))
    lacking = sorted(labels_of(expression) - labels)
    return [f"no metric {name}" for name in unknown] + [f"no label {name} in {expression}" for name in lacking]


def recorded(files: Iterable[Path]) -> dict[str, set[str]]:
    """The series that recording rules make, with the labels they are grouped by."""
    rules = [rule for file in files for rule in rules_of(file) if "record" in rule]
    grouped = re.compile(r"^sum by \(([^)]*)\)")
    return {rule["record"]: {name.strip() for name in grouped.findall(rule["expr"])[0].split(",")} for rule in rules}


def rules_of(file: Path) -> list[dict[str, str]]:
    """The rules of a file."""
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
