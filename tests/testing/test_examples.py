"""The examples of tests with others' clients pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = ("test_a_worker_dies", "test_aiokafka", "test_confluent_kafka", "test_kafka_python")
FRAMEWORKS = ("test_django", "test_fastapi", "test_faststream", "test_faust", "test_quixstreams")
"""They aren't in this environment: tests/interop/test_python_frameworks.py."""

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "testing"


def test_all_are_run_somewhere() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*CLIENTS, *FRAMEWORKS}


@pytest.mark.parametrize("name", CLIENTS)
def test_an_example_passes(name: str, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / f"{name}.py", tmp_path)  # away from this repository's configuration of pytest
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    plugin = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p kohort.testing.plugin"}
    run = subprocess.run(command, env=os.environ | plugin, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
