"""The application's instances, as child processes."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.cli.demo.plan import Plan
from kohort.cli.demo.processes import Child

_SPARK_CONF: Final = ("spark.ui.enabled=false", "spark.ui.showConsoleProgress=false", "spark.log.level=ERROR")
"""Spark's settings: no pages, no progress bars, and only errors in logs."""

_JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that runs a minute or two, the quick compiler is enough."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of the application.

    Attributes:
        name: "instance-1".
        endpoint: where it answers queries.
    """

    name: str
    process: Child
    endpoint: tuple[str, int]
    journal: Path


def start_instance(number: int, program: Path, servers: str, plan: Plan) -> Instance:
    """Starts an instance with a directory, a journal and a log of its own."""
    name = f"instance-{number}"
    home = plan.run / name
    home.mkdir(parents=True)
    endpoint = ("127.0.0.1", free_port())
    journal = plan.run / f"{name}.jsonl"
    command = [
        sys.executable, str(program), servers, "--master", f"local[{plan.cores}]", "--state-dir", str(home / "state"),
        "--endpoint", f"{endpoint[0]}:{endpoint[1]}", "--journal", str(journal),
    ]  # fmt: skip
    return Instance(name, Child(name, command, home / "log.txt", _environment()), endpoint, journal)


def start_batch(program: Path, files: Path, plan: Plan) -> tuple[Child, Path]:
    """Starts the batch job; returns also the file that it writes when it is done."""
    result = plan.run / "batch.jsonl"
    # The stream gets the cores: it is what is shown.
    command = ["nice", "-n", "19", sys.executable, "-m", "kohort.cli.demo.batch", str(program), str(files), str(result)]
    return Child("the batch job", command, plan.run / "batch-log.txt", _environment()), result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    """Makes Spark's workers run this Python, and its drivers bind to this machine only."""
    from kohort.spark.class_archive import jvm_options

    confs = " ".join(f"--conf {each}" for each in _SPARK_CONF)
    java = shlex.quote(f"{_JVM_OPTIONS} {jvm_options()}".strip())
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--driver-memory 1g --driver-java-options {java} {confs} pyspark-shell",
        "PYTHONWARNINGS": "ignore::FutureWarning",
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }
