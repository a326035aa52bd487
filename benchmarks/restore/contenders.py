"""Who restores: how each is fetched and started."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.pipeline.contenders import JAVA_FLAGS
from tests.interop.java import build
from tests.tools import JAVA, MAVEN

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Job:
    """What is restored.

    Attributes:
        servers: the brokers.
        application: the application's id; its changelog is named after it, and so is its empty source.
        partitions: of both.
        keys: how many the changelog has.
        directory: for state, kept over a restart.
    """

    servers: str
    application: str
    partitions: int
    keys: int
    directory: str

    @property
    def changelog(self) -> str:
        """As Kafka Streams calls it."""
        return f"{self.application}-counts-changelog"

    @property
    def source(self) -> str:
        """What the application reads."""
        return f"{self.application}-source"


class Contender(ABC):
    """Restores a store."""

    name: str
    title: str

    def missing(self) -> str | None:
        """What isn't there on this machine."""
        return None

    def prepare(self) -> None:  # noqa: B027 -- one needs nothing
        """Fetch and build what it needs."""

    @abstractmethod
    def command(self, job: Job) -> list[str]:
        """Starts it; see `programs/kohort.py` for what it prints."""


class Kohort(Contender):
    """The part of an instance that restores."""

    name, title = "kohort", "Kohort"

    def command(self, job: Job) -> list[str]:
        """Starts it."""
        given = {name: value for name, value in asdict(job).items() if name != "application"}
        return [
            sys.executable,
            "-m",
            "benchmarks.restore.programs.kohort",
            json.dumps({**given, "changelog": job.changelog}),
        ]


class KafkaStreams(Contender):
    """Apache Kafka's library, in Java."""

    name, title = "streams", "Kafka Streams"

    def missing(self) -> str | None:
        """What isn't there on this machine."""
        return next((tool.missing for tool in (JAVA, MAVEN) if not tool.is_there()), None)

    def prepare(self) -> None:
        """Fetch and build what it needs."""
        _built()

    def command(self, job: Job) -> list[str]:
        """Starts it."""
        path = f"{_built() / 'classes'}:{_built() / 'dependency'}/*"
        options = json.dumps({**asdict(job), "source": job.source})
        return ["java", *JAVA_FLAGS, "-cp", path, "kohort.benchmarks.Restoring", options]


CONTENDERS: tuple[Contender, ...] = (Kohort(), KafkaStreams())


def _built() -> Path:
    """What Maven makes of the program, once: in .cache."""
    return build.built(HERE / "java", "restore-streams")
