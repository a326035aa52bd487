"""Programs made by hand, without Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

from kohort.spark.program.aggregates import count
from kohort.spark.program.compiled import (
    Aggregate,
    AggregateSpec,
    Branch,
    CompiledSubtopology,
    Join,
    PartialsInput,
    Program,
    Route,
    SourceSpec,
    TableStore,
    ToPartials,
    TopicInput,
    ToTopic,
)
from kohort.spark.program.error_policies import DeadLetter, ErrorPolicy, Fail
from kohort.spark.program.fingerprint import fingerprint
from kohort.spark.program.settings import AppSettings
from kohort.spark.program.topology import topology
from kohort.spark.program.windows import window

FLIGHT = StructType(
    [StructField("carrier", StringType()), StructField("delay", DoubleType()), StructField("at", TimestampType())]
)
AIRLINE = StructType([StructField("carrier", StringType()), StructField("name", StringType())])


def source(topic: str, schema: StructType = FLIGHT, on_error: ErrorPolicy | None = None) -> SourceSpec:
    return SourceSpec(topic, schema, "json", ("carrier",), None, "earliest", on_error or Fail())


def spec(name: str = "delays", size: str = "1 hour", **more: Any) -> AggregateSpec:
    kinds: tuple[tuple[str, Any], ...] = (("n", LongType()),)
    given: dict[str, Any] = {
        "name": name,
        "group": (("origin", StringType()),),
        "window": window("at", size),
        "aggregations": (("n", count()),),
        "emit": "update",
        "changelog": f"app-{name}-changelog",
        "event_time": "at",
        "arrow": None,
        "state_columns": kinds,
        "output_columns": kinds,
        "route": Route.JSON,
        "routed_by": ("origin",),
    }
    return AggregateSpec(**(given | more))


def program(
    application_id: str = "app", *, prefix: str = "", aggregate: AggregateSpec | None = None, dead: str | None = None
) -> Program:
    """Flights joined with airlines, and counted by origin; all topics are called `prefix` and something."""
    aggregate = aggregate or spec(changelog=f"{application_id}-delays-changelog")
    flights = source(f"{prefix}flights", on_error=DeadLetter(dead) if dead else None)
    airlines = TableStore("airlines", source(f"{prefix}airlines", AIRLINE), f"{application_id}-airlines-changelog")
    repartition = f"{application_id}-{aggregate.name}-repartition"
    join = Join(airlines, ("carrier",), "inner", is_global=False)
    subtopologies = (
        CompiledSubtopology(
            "0", TopicInput(flights), (airlines,), (Branch((join,), ToPartials(repartition, aggregate)),)
        ),
        CompiledSubtopology(
            "1",
            PartialsInput(repartition, aggregate),
            (),
            (Branch((), Aggregate(aggregate, (ToTopic(f"{prefix}out", None, "json"),))),),
        ),
    )
    settings = AppSettings.of(application_id, "localhost:9092")
    return Program(application_id, subtopologies, (), topology(subtopologies, settings), fingerprint(subtopologies))
