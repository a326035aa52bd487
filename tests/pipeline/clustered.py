"""A program for a cluster: counts flights on executors in processes of their own, and says what a stranger got.

python -m tests.pipeline.clustered PROPERTIES DIRECTORY FLIGHTS: the properties of its clients as JSON, and how many
flights there are.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kohort.client.config import ClientConfig
from kohort.spark import StreamsApp, count
from kohort.spark.datasource.source import KohortDataSource
from kohort.spark.executor_rpc.frames import MAGIC
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.monitoring.events import EpochDone
from tests.pipeline.applications import Heard
from tests.pipeline.secured import APPLICATION, SINK, SOURCE

SECRET = "open-sesame-of-spark"


class Done(Heard):
    """Stops the application when all flights were counted, after a stranger has tried its luck."""

    def __init__(self, app: StreamsApp, flights: int) -> None:
        super().__init__()
        self._app = app
        self._flights = flights
        self._ended = False
        self.stranger_got = ""

    def epoch(self, done: EpochDone) -> None:
        super().epoch(done)
        if not self._ended and self.through(self._flights, moved=True):
            self._ended = True
            threading.Thread(target=self._end).start()

    def _end(self) -> None:
        (server,) = servers
        with socket.create_connection(server.address, 10) as stranger:
            stranger.sendall(MAGIC + server.token)
            try:
                self.stranger_got = repr(stranger.recv(1000))
            except ConnectionResetError:
                self.stranger_got = repr(b"")
        self._app.stop()


servers: list[RpcServer] = []


def main(properties: str, directory: Path, number: int) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    init = RpcServer.__init__

    def noted(self: RpcServer, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        servers.append(self)

    RpcServer.__init__ = noted  # type: ignore[method-assign]
    spark = (
        SparkSession.builder.master("local-cluster[1,1,600]")
        .config("spark.executor.memory", "600m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.authenticate", "true")
        .config("spark.authenticate.secret", SECRET)
        .config("spark.network.crypto.enabled", "true")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", (directory / "events").as_uri())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    config, _ = ClientConfig.from_properties(json.loads(properties))
    app = StreamsApp(APPLICATION, bootstrap_servers=config, state_dir=directory / "state")
    flights = app.stream(SOURCE, schema="origin STRING")
    flights.group_by("origin").aggregate("delays", n=count()).to(SINK)
    done = Done(app, number)
    app.run(spark, listeners=[done], progress=False)
    spark.dataSource.register(KohortDataSource)
    options = {f"kafka.{key}": value for key, value in json.loads(properties).items()}
    read = spark.read.format("kohort").options(**options).option("topic", SOURCE).load().count()
    (server,) = servers
    said = {"handover": server.handover[:1].decode(), "stranger_got": done.stranger_got, "read": read}
    sys.stdout.write(f"{json.dumps(said)}\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
