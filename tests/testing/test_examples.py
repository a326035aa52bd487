"""The examples of tests with others' clients pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "testing"
FILES = sorted(EXAMPLES.glob("test_*.py"))


def test_there_are_some() -> None:
    assert [file.stem for file in FILES] == ["test_aiokafka", "test_confluent_kafka", "test_kafka_python"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_passes(file: Path, tmp_path: Path) -> None:
    shutil.copy(file, tmp_path)  # away from this repository's configuration of pytest
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    plugin = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p kohort.testing.plugin"}
    run = subprocess.run(command, env=os.environ | plugin, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
