"""Who answers the queries, and which."""

from __future__ import annotations

import sys

from benchmarks.nexmark import queries
from benchmarks.pipeline import contenders
from benchmarks.pipeline.contenders import Contender, Job


class Kohort(contenders.Kohort):
    """Kohort's own pipeline."""

    cases = queries.NAMES

    def command(self, job: Job) -> list[str]:
        """Starts an instance."""
        return [sys.executable, "-m", "benchmarks.nexmark.programs.kohort", job.json()]


class Structured(contenders.Structured):
    """Spark's own streaming, with state in RocksDB: the batch's SQL, or what streamed.py has for it."""

    cases = queries.NAMES

    def command(self, job: Job) -> list[str]:
        """Starts an instance."""
        return [sys.executable, "-m", "benchmarks.nexmark.programs.structured", job.json(jars=self.jars())]


class KafkaStreams(contenders.KafkaStreams):
    """Apache Kafka's library, in Java."""

    cases = ("q3", "q4", "q5", "q7", "q8", "q11", "q12")

    def main_class(self, job: Job) -> str:
        """The program."""
        return "kohort.benchmarks.nexmark.Nexmark"


CONTENDERS: tuple[Contender, ...] = (Kohort(), Structured(), KafkaStreams())
