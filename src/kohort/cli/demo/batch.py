"""The same aggregations as a batch job: plain Spark over the CSV files, without Kohort.

    python -m kohort.cli.demo.batch PROGRAM FILES RESULT

Only the expression for the sky is taken from PROGRAM. RESULT gets a JSON object for each group: its "topic", and the
columns of that topic.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS: Final = {
    "flights": (
        "carrier",
        "origin",
        "CAST(dep_delay AS INT)",
        "CAST(time_hour AS TIMESTAMP)",
        "CAST(reported AS TIMESTAMP)",
    ),
    "airlines": ("carrier", "name"),
    "weather": (
        "origin",
        "CAST(time_hour AS TIMESTAMP)",
        *(f"CAST({name} AS DOUBLE)" for name in ("temp", "wind_speed", "precip", "visib")),
    ),
}
"""The columns that are read from each file."""


def main(program: Path, files: Path, result: Path) -> None:
    """Computes the result, and renames its file when it is complete."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .appName("flight-delays-batch")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    unfinished = result.with_suffix(".part")
    with unfinished.open("w") as out:
        for row in _rows(aggregations(spark, files, sky_of(program))):
            out.write(json.dumps(row) + "\n")
    unfinished.rename(result)
    spark.stop()


def sky_of(program: Path) -> str:
    """The program's expression for the sky, which must be the same in both."""
    spec = importlib.util.spec_from_file_location("flight_delays", program)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.SKY)


def aggregations(spark: SparkSession, files: Path, sky: str) -> dict[str, DataFrame]:
    """The content that the application's topics should have, by topic.

    Flights that are reported more than a day after the end of their hour are too late for its window.
    """
    for name, columns in _COLUMNS.items():
        text = spark.read.csv(str(files / f"{name}.csv"), header=True, nullValue="NA")
        text.selectExpr(*columns).createOrReplaceTempView(name)
    by_hour = spark.sql("""
        SELECT date_format(date_trunc('hour', f.time_hour), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'") AS window, f.origin,
               count(*) AS n, avg(f.dep_delay) AS mean, percentile_approx(f.dep_delay, 0.9) AS p90,
               max(f.dep_delay) AS worst
        FROM flights f JOIN airlines a ON f.carrier = a.carrier
        WHERE f.dep_delay IS NOT NULL AND f.reported < f.time_hour + INTERVAL 25 HOURS
        GROUP BY 1, 2""")
    by_sky = spark.sql(f"""
        SELECT name, sky, count(*) AS n, avg(dep_delay) AS mean,
               sum(CAST(dep_delay > 60 AS INT)) AS late
        FROM (SELECT a.name, f.dep_delay, {sky} AS sky
              FROM flights f JOIN airlines a ON f.carrier = a.carrier
                   LEFT JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
              WHERE f.dep_delay IS NOT NULL)
        GROUP BY name, sky""")
    return {"delays-by-hour": by_hour, "delays-by-sky": by_sky}


def _rows(results: dict[str, DataFrame]) -> Iterator[dict[str, Any]]:
    for topic, frame in results.items():
        for row in frame.collect():
            yield {"topic": topic, **row.asDict()}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
