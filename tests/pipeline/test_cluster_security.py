"""Executors in processes of their own: what they say to the driver is encrypted, and passwords are in no log.

The broker wants SASL_SSL, so an executor that reads has got the password by the driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.tools import JAVA

from .applications import producer, read
from .clustered import SECRET
from .secured import PASSWORD, SINK, SOURCE, secured_broker

NUMBER = 300


def spark_home(directory: Path) -> Path:
    """A home of Spark for this run: executors of a local cluster write what they say into its folder `work`."""
    directory.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (directory / part.name).symlink_to(part)
    return directory


@pytest.mark.long
def test_executors_and_driver_speak_tls_and_a_stranger_gets_nothing(tmp_path: Path) -> None:
    JAVA.require()
    (tmp_path / "events").mkdir()
    with secured_broker(tmp_path) as secured:
        sending = producer(secured.administrators)
        for number in range(NUMBER):
            sending.produce(SOURCE, json.dumps({"origin": f"o{number % 7}"}).encode())
        sending.flush()

        program = ["-m", "tests.pipeline.clustered", json.dumps(secured.properties), str(tmp_path), str(NUMBER)]
        ran = subprocess.run(
            [sys.executable, *program],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(spark_home(tmp_path / "spark"))},
        )
        assert ran.returncode == 0, ran.stderr[-5000:]
        counts = {message.key(): json.loads(message.value())["n"] for message in read(secured.administrators, SINK)}
    assert sum(counts.values()) == NUMBER
    said, logged = json.loads(ran.stdout.splitlines()[-1]), ran.stderr
    assert said["read"] == NUMBER
    assert said["handover"] == "s"  # sealed with Spark's secret
    assert "KHL1" not in said["stranger_got"]
    assert len(said["stranger_got"]) < 40  # at most an alert of TLS
    assert "to the port for executors was refused: [SSL" in logged
    assert "spark.authenticate" not in logged  # nothing to warn of
    events = "".join(file.read_text() for file in (tmp_path / "events").rglob("*") if file.is_file())
    assert "SparkListenerJobStart" in events
    of_executors = "".join(file.read_text() for file in (tmp_path / "spark" / "work").glob("*/*/std*"))
    assert "Spark Executor Command" in of_executors
    for secret in (SECRET, PASSWORD, "PRIVATE KEY"):
        for text in (events, logged, of_executors):
            assert secret not in text
