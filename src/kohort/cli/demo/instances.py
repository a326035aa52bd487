"""The application's instances, as child processes."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.cli.demo.plan import Plan
from kohort.cli.demo.processes import Child

__all__ = ["Instance", "free_port", "start_batch", "start_instance"]


_SPARK_SETTINGS: Final = ("spark.ui.enabled=false", "spark.ui.showConsoleProgress=false", "spark.log.level=ERROR")
"""Spark's settings: no UI, no progress bar, and only errors in the log."""

_JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that runs for a minute or two doesn't gain from the slow compiler."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance.

    Attributes:
        name: "instance-1".
        process: the process of its driver.
        endpoint: where it answers queries.
        journal: its journal's file.
    """

    name: str
    process: Child
    endpoint: tuple[str, int]
    journal: Path


def start_instance(number: int, program: Path, servers: str, plan: Plan) -> Instance:
    """Starts an instance with its own directory, journal and log."""
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
    """Starts the batch job. Returns it, and the file that it writes when it is done."""
    result = plan.run / "batch.jsonl"
    # At low priority: the stream, which is what is shown, gets the cores.
    command = ["nice", "-n", "19", sys.executable, "-m", "kohort.cli.demo.batch", str(program), str(files), str(result)]
    return Child("the batch job", command, plan.run / "batch-log.txt", _environment()), result


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    """Has Spark's workers use this Python, and its drivers listen on this machine only."""
    confs = " ".join(f"--conf {each}" for each in _SPARK_SETTINGS)
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--driver-memory 1g --driver-java-options '{_JVM_OPTIONS}' {confs} pyspark-shell",
        "PYTHONWARNINGS": "ignore::FutureWarning",
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }
