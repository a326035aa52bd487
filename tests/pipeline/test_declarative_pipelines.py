"""Topics as sources of Spark Declarative Pipelines, run as users do: `spark-pipelines run`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from kohort.client import Producer
from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.testing.broker import Broker
from tests.tools import JAVA

SPEC = """
name: flights
storage: file://{home}/storage
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "1"
"""

TABLE = """
from pyspark import pipelines as dp

@dp.table
def flights():
    rows = spark.readStream.format("kohort").options(
        servers="{servers}", topic="flights", startingOffsets="earliest", groupId="flights-pipeline"
    ).load()
    return rows.selectExpr("CAST(value AS STRING) AS flight", "offset")
"""


async def write(broker: Broker, flights: list[str]) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send_table("flights", pa.table({"value": flights}))


async def committed(broker: Broker) -> dict[TopicPartition, int]:
    async with Admin(broker.bootstrap_servers) as admin:
        return {at: each.offset for at, each in (await admin.group_offsets.committed("flights-pipeline")).items()}


def run(home: Path) -> list[str]:
    """Runs the pipeline to the end of what is there; the flights of its table."""
    spark = Path(pyspark.__file__).parent
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # Spark looks for data sources with its python3
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [
        spark / "bin" / "spark-pipelines", "run", "--remote", "local[2]", "--conf", "spark.ui.enabled=false",
        "--conf", f"spark.sql.warehouse.dir={home}/warehouse", "--conf", "spark.sql.catalogImplementation=hive",
        "--spec", home / "spark-pipeline.yml",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    files = sorted((home / "warehouse" / "flights").glob("*.parquet"))
    return sorted(flight for file in files for flight in pq.read_table(file)["flight"].to_pylist())


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_pipelines_table_takes_each_record_once(kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    """A run takes what is there, and the next one what has come since; the group shows how far it is."""
    JAVA.require()
    (tmp_path / "transformations").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(home=tmp_path))
    table = TABLE.format(servers=kohort_fresh_broker.bootstrap_servers)
    (tmp_path / "transformations" / "flights.py").write_text(table)
    asyncio.run(write(kohort_fresh_broker, ["a", "b", "c"]))
    assert run(tmp_path) == ["a", "b", "c"]
    asyncio.run(write(kohort_fresh_broker, ["d", "e"]))
    assert run(tmp_path) == ["a", "b", "c", "d", "e"]
    assert asyncio.run(committed(kohort_fresh_broker)) == {TopicPartition("flights", 0): 5}
