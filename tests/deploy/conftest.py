"""What a broker and an instance really expose."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from kohort.broker.metrics import MetricsPort
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.spark.monitoring.events import Listeners
from kohort.spark.monitoring.lag import RecordsLag, StandbyLag
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.metrics import QueueMetrics
from tests.broker.certificates import write_stores
from tests.broker.conftest import serving
from tests.broker.handlers.conftest import append_records
from tests.broker.share.groups import initialized, share_fetch
from tests.broker.streams import members
from tests.broker.test_metrics import ask
from tests.spark.monitoring.events import epoch, restoring, tasks


class Scrapes(NamedTuple):
    """In Prometheus' text format."""

    broker: bytes
    instance: bytes
    worker: bytes


@pytest.fixture(scope="session")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> Scrapes:
    """Of a broker and an instance to which everything has happened that is counted."""
    broker = asyncio.run(of_a_broker(tmp_path_factory.mktemp("broker")))
    return Scrapes(broker, of_an_instance(), QueueMetrics([QueueCounts("jobs", deliveries={1: 1})]).text())


async def of_a_broker(directory: Path) -> bytes:
    keystore, _ = write_stores(directory)
    async with serving(
        directory,
        "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        f"listener.name.ssl.ssl.keystore.location={keystore}",
        "group.streams.initial.rebalance.delay.ms=0",
        metrics=MetricsPort("127.0.0.1", 0),
    ) as server:
        crowd = members.Crowd(server)
        topic = crowd.topics.create("words", 3)
        await members.reconcile(await crowd.joined(members.stateless("words")))
        append_records(server.broker, "words", 0, 5)
        server.broker.share_state.start()
        initialized(server.broker, topic)
        client = await crowd.client()
        await client.call(share_fetch(topic))
        place = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=2)
        topics = [OffsetCommitRequest.Topic(name="words", partitions=[place])]
        committed = await client.call(
            OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics), version=8
        )
        assert not committed.topics[0].partitions[0].error_code
        counted(server)
        status, body = await ask(server.metrics_port, "GET /metrics HTTP/1.1\r\n\r\n")
        assert status == "HTTP/1.1 200 OK"
        await crowd.close()
        return body


def counted(server: Server) -> None:
    """What has labels once it has happened."""
    broker = server.broker
    broker.metrics.produce_failed(ErrorCode.MESSAGE_TOO_LARGE)
    broker.metrics.fetch_failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    broker.metrics.observe(0, 0.001, 10, 10)
    broker.audit.authentications["PLAIN"] += 1
    broker.audit.failed_authentications["PLAIN"] += 1
    broker.audit.denials["Fetch"] += 1
    broker.groups.placer.failed["optimal"] += 1
    broker.throttling.throttled["request"] += 1
    broker.throttling.throttled_ms["request"] += 100


def of_an_instance() -> bytes:
    overview = Overview(measured_lags=lambda: {"0": RecordsLag(9, 0.0)})
    metrics = Metrics("flights", overview, lambda: [StandbyLag("delays", 2, "standby", 17)])
    listeners = Listeners([overview, metrics])
    listeners.tasks(tasks(0.0, ["0_0", "1_0"], ["1_2"], restoring=["1_0"]))
    listeners.epoch(epoch(overview.clock(), dropped=1, reasons={"no key": 1}, late=2, lag=9))
    listeners.restoring(restoring(0.0, 10, 40))
    listeners.failed("x")
    return metrics.text()
