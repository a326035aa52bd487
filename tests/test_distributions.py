"""kohort and kohort-spark are made of one tree, and have one version."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import kohort

ROOT = Path(__file__).parents[1]
PIPELINE = ROOT / "spark"


def project(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((directory / "pyproject.toml").read_text())["project"]
    return found


def test_each_asks_for_the_version_of_the_other() -> None:
    base, pipeline = project(ROOT), project(PIPELINE)
    assert base["optional-dependencies"]["spark"] == [f"kohort-spark=={kohort.__version__}"]
    assert f"kohort[arrow,security]=={kohort.__version__}" in pipeline["dependencies"]
    assert base["dynamic"] == pipeline["dynamic"] == ["version"]


def test_both_are_for_the_same_pythons_under_the_same_licence() -> None:
    base, pipeline = project(ROOT), project(PIPELINE)
    for key in ("requires-python", "license", "license-files"):
        assert base[key] == pipeline[key]
    assert set(pipeline["classifiers"]) <= set(base["classifiers"])
    assert (PIPELINE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_both_have_the_same_source() -> None:
    """By a link in a clone, by a copy in an sdist."""
    found = {each.relative_to(PIPELINE): each.read_bytes() for each in (PIPELINE / "src/kohort/spark").rglob("*.py")}
    assert found == {each.relative_to(ROOT): each.read_bytes() for each in (ROOT / "src/kohort/spark").rglob("*.py")}
    assert found
