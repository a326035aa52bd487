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
    """Spark's own streaming, with state in RocksDB.

    Its program is the batch's SQL. What it can't say so: aggregates of aggregates that change (q4, q5, q6), window
    functions (q9, q19), exact counts of distinct values (q15, q16). Joins of what is distinct (q8), and sessions (q11),
    it gives when time has passed them, by a watermark, and so not the last ones, which the batch has.
    """

    cases = ("q0", "q1", "q2", "q3", "q7", "q10", "q13", "q14", "q17", "q18", "q20", "q21", "q22")

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
