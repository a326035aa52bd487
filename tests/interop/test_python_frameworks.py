"""The examples of tests with frameworks pass: FastStream, Quix Streams, Faust, FastAPI and Django, over aiokafka and
librdkafka.

They aren't in our environment, whose versions of what they need may not be theirs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .toolchains import BUILD_S, python_packages

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_S)]

ROOT: Final = Path(__file__).parents[2]
FRAMEWORKS: Final = {
    "test_faststream": ("faststream==0.7.8",),
    "test_quixstreams": ("quixstreams==3.28.1",),
    "test_faust": ("faust-streaming==0.15.3",),
    "test_fastapi": ("fastapi==0.165.0", "httpx==0.28.1"),
    "test_django": ("django==5.2.19",),
}
"""By the examples in `docs/examples/testing`; aiokafka and confluent-kafka, where they are over these, are ours."""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_example_passes(name: str, tmp_path: Path) -> None:
    packages = python_packages(*FRAMEWORKS[name])
    shutil.copy(
        ROOT / "docs" / "examples" / "testing" / f"{name}.py", tmp_path
    )  # away from our configuration of pytest
    environment = os.environ | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p kohort.testing.plugin -p no:cacheprovider",
        "PYTHONPATH": os.pathsep.join([str(packages), str(ROOT / "src")]),
    }
    command = [sys.executable, "-m", "pytest", "-q"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
