"""A worker of a queue, as a program of its own: python -m tests.interop.client.queue_worker SERVERS APPLICATION.

Its jobs take `ms` each; a torn one is rejected, and a job's result says which process did it.
"""

from __future__ import annotations

import os
import sys
import time

from kohort.spark import StreamsApp

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(servers: str, application: str) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812

    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    @F.udf("string")
    def done(number: int, ms: int) -> str:
        time.sleep(ms / 1000)
        return "reject" if number % 50 == 7 else "accept"

    app = StreamsApp(application, bootstrap_servers=servers)
    jobs = app.queue(
        f"{application}-jobs", schema="id LONG, ms INT", dead_letters=f"{application}-dead", max_records=10
    )
    worked = jobs.with_columns(outcome=done("id", "ms"), worker=F.lit(os.getpid()))
    worked.process(outcome="outcome").to(f"{application}-done", key="id")
    app.run(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
