"""What `kohort.spark` offers, and what importing it does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import kohort.spark


def test_all_names_are_there() -> None:
    pytest.importorskip("pyspark")
    assert all(getattr(kohort.spark, name) is not None for name in kohort.spark.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'sessionize'"):
        _ = kohort.spark.sessionize


@pytest.mark.parametrize("given", [None, "/opt/cluster/python"])
def test_workers_run_this_python_unless_told_otherwise(given: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    if given is not None:
        environment["PYSPARK_PYTHON"] = given
    code = "import os, sys, kohort.spark; print(os.environ['PYSPARK_PYTHON'], 'pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [given or sys.executable, "False"]
