"""Who is measured: how each is fetched and started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from tests.interop.java import build
from tests.tools import JAVA, MAVEN, Tool

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
QUIX = build.CACHE.parent / "quixstreams-venv"
JAVA_FLAGS = ("-Xmx2g", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_MAIN_CLASSES = {"flights": "kohort.benchmarks.Delays", "auctions": "kohort.benchmarks.Auctions"}


@dataclass(frozen=True)
class Job:
    """What an instance is told.

    Attributes:
        servers: the brokers.
        application: the application's id.
        source, results: topics.
        directory: its own, for state; kept over a restart.
        standbys: copies of state that it shall have.
        case: what it computes.
    """

    servers: str
    application: str
    source: str
    results: str
    directory: str
    standbys: int = 0
    case: str = "flights"

    def json(self, **more: object) -> str:
        """As the programs take it."""
        return json.dumps({**asdict(self), **more})


class Contender(ABC):
    """Runs the aggregations.

    Attributes:
        name: on the command line.
        title: in tables.
        measures: what is measured of it, by methods of `Bench`.
        cases: what it can compute.
        source: the name of the Spark data source that it reads with, if there is one.
        share: of the records that it gets, so that it ends some day.
        takes_over: a second instance goes on when one is killed; else it is restarted.
        tells_when_idle: it says that it has started before there are records.
        remarks: by case: what it does otherwise than the others.
    """

    name: str
    title: str
    measures: tuple[str, ...] = ("start", "throughput", "latency", "pause")
    cases: tuple[str, ...] = ("flights", "auctions")
    source = ""
    share = 1.0
    takes_over = False
    tells_when_idle = True
    remarks: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def missing(self) -> str | None:
        """What isn't there on this machine."""
        return next((tool.missing for tool in self.tools() if not tool.is_there()), None)

    def tools(self) -> tuple[Tool, ...]:
        """Programs that it needs."""
        return ()

    def prepare(self) -> None:  # noqa: B027 -- most need nothing
        """Fetch and build what it needs."""

    def jars(self) -> str:
        """What its data source needs, with commas between."""
        return ""

    @abstractmethod
    def command(self, job: Job) -> list[str]:
        """Starts an instance.

        It prints "started SECONDS" (since 1970) when its processing begins, and may print "phase SECONDS NAME" at the
        end of each part of its start.
        """


class Kohort(Contender):
    """Kohort's own pipeline."""

    name, title = "kohort", "Kohort"
    measures = (*Contender.measures, "epochs", "reading")
    source = "kohort"
    takes_over = True

    def tools(self) -> tuple[Tool, ...]:
        """Programs that it needs."""
        return (JAVA,)

    def missing(self) -> str | None:
        """What isn't there on this machine."""
        return super().missing() or (None if find_spec("kohort.spark.runtime") else "kohort.spark.runtime not found")

    def command(self, job: Job) -> list[str]:
        """Starts an instance."""
        return [sys.executable, "-m", "benchmarks.pipeline.programs.kohort", job.json()]


class Structured(Contender):
    """Spark's own streaming."""

    name, title = "structured", "Structured Streaming"
    measures = (*Contender.measures, "reading")
    source = "kafka"
    remarks: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "flights": (
            "Structured Streaming's results are written at least once; after SIGKILL it is restarted at once",
            "  it processes nothing before its query is started: the first result says how long its start takes",
        ),
        "auctions": ("Structured Streaming's results are written at least once; its state is in RocksDB",),
    }
    options: ClassVar[Mapping[str, str]] = {}
    """Of the program, beside those of all jobs."""

    def tools(self) -> tuple[Tool, ...]:
        """Programs that it needs."""
        return (JAVA, MAVEN)

    def prepare(self) -> None:
        """Fetch and build what it needs."""
        connector()

    def jars(self) -> str:
        """What its data source needs, with commas between."""
        return connector()

    def command(self, job: Job) -> list[str]:
        """Starts an instance."""
        return [sys.executable, str(PROGRAMS / "structured.py"), job.json(jars=self.jars(), **self.options)]


class RealTime(Structured):
    """Structured Streaming's program in Spark's real-time mode: a batch lasts, and rows go through it one by one."""

    name, title = "realtime", "Spark's real-time mode"
    measures = ("latency",)
    remarks: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "flights": ("Spark's real-time mode makes a checkpoint every 5 minutes: none in so short a run",)
    }
    options: ClassVar[Mapping[str, str]] = {"real_time": "5 minutes"}


class KafkaStreams(Contender):
    """Apache Kafka's library, in Java."""

    name, title = "streams", "Kafka Streams"
    takes_over = True
    remarks: ClassVar[Mapping[str, tuple[str, ...]]] = {"flights": ("Kafka Streams has no quantiles: no p90",)}

    def tools(self) -> tuple[Tool, ...]:
        """Programs that it needs."""
        return (JAVA, MAVEN)

    def prepare(self) -> None:
        """Fetch and build what it needs."""
        _built("streams")

    def command(self, job: Job) -> list[str]:
        """Starts an instance."""
        target = _built("streams")
        path = f"{target / 'classes'}:{target / 'dependency'}/*"
        return ["java", *JAVA_FLAGS, "-cp", path, self.main_class(job), job.json()]

    def main_class(self, job: Job) -> str:
        """The program."""
        return _MAIN_CLASSES[job.case]


class Quix(Contender):
    """A streams library in Python, in a virtual environment of its own."""

    name, title = "quix", "quixstreams"
    cases = ("flights",)
    share = 0.05
    tells_when_idle = False
    remarks: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "flights": (
            "quixstreams has no quantiles: no p90; a process of it has one thread",
            "  after SIGKILL it is restarted at once; the transaction that it left open holds readers up for its 60 s",
        )
    }

    def prepare(self) -> None:
        """Fetch and build what it needs."""
        if not (QUIX / ".ready").exists():
            venv.create(QUIX, with_pip=True, clear=True)
            command = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "quixstreams==3.28.1"]
            subprocess.run([QUIX / "bin" / "python", *command], check=True)
            (QUIX / ".ready").touch()

    def command(self, job: Job) -> list[str]:
        """Starts an instance."""
        return [str(QUIX / "bin" / "python"), str(PROGRAMS / "quix.py"), job.json()]


CONTENDERS: tuple[Contender, ...] = (Kohort(), Structured(), RealTime(), KafkaStreams(), Quix())


def connector() -> str:
    """Jars of Spark's own Kafka connector, with commas between."""
    return ",".join(map(str, sorted((_built("connector") / "dependency").glob("*.jar"))))


def _built(project: str) -> Path:
    """What Maven makes of a project here, once: in .cache."""
    return build.built(HERE / "java" / project, f"pipeline-{project}")


def environment() -> dict[str, str]:
    """What instances find around them."""
    # Python keeps compiled modules unless it is told not to, as in some containers.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
