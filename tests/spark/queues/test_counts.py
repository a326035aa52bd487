"""What workers count, as lines and as metrics."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import urllib.error
import urllib.request

import pyarrow as pa
import pytest

from kohort.client.sharing.acknowledgements import Acknowledgement, AcknowledgeType
from kohort.client.sharing.shared_partitions import AcknowledgementResult
from kohort.client.types import TopicPartition
from kohort.http_access import OPEN, HttpAccess
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.http_server import QueueServer
from kohort.spark.queues.progress import QueueProgress

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def told(counts: QueueCounts, *ranges: tuple[int, int, int], error: ErrorCode | None = None) -> None:
    failure = None if error is None else KafkaError(error, "no")
    given = tuple(Acknowledgement(*each) for each in ranges)
    counts.acknowledged(AcknowledgementResult(TopicPartition("jobs", 0), given, failure))


def test_records_are_counted_when_brokers_know() -> None:
    counts = QueueCounts("jobs", acquired=10, in_flight=2)
    told(counts, (0, 3, ACCEPT), (4, 4, RELEASE), (5, 5, REJECT), (6, 9, RENEW))
    told(counts, (6, 7, ACCEPT), error=ErrorCode.INVALID_RECORD_STATE)
    told(counts, (8, 9, RENEW), error=ErrorCode.INVALID_RECORD_STATE)
    assert counts.line() == "10 acquired, 4 accepted, 1 released, 1 rejected, 2 lost, 2 in flight, 4 renewed"


def test_lines_come_at_most_every_ten_seconds_and_at_the_end() -> None:
    now, file = [0.0], io.StringIO()
    counts = QueueCounts("jobs")
    progress = QueueProgress("app", [counts], file, lambda: now[0])
    for at in (0.0, 5.0, 10.0, 11.0):
        now[0] = at
        counts.acquired += 1
        counts.changed()
    progress.close()
    texts = [line.split(" ", 1)[1] for line in file.getvalue().splitlines()]
    assert texts == [f"app: queue jobs: {count} acquired, 0 accepted" for count in (1, 3, 4)]


def test_lines_are_in_the_log_where_that_takes_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file = io.StringIO()
    QueueProgress("app", [QueueCounts("jobs", acquired=1)], file).close()
    assert (caplog.messages, file.getvalue()) == (["app: queue jobs: 1 acquired, 0 accepted"], "")


@pytest.mark.parametrize("access", [OPEN, HttpAccess(b"a token of some length")])
def test_metrics_counts_and_health_are_served_to_who_may_ask(access: HttpAccess) -> None:
    async def body() -> str:
        counts = QueueCounts("jobs", in_flight=2, job_s=1.5, dead_letters=1)
        counts.handed_out(pa.table({"delivery_count": pa.array([1, 2, 1], pa.int16())}))
        server = QueueServer([counts], "127.0.0.1", 0, access)
        await server.start()

        def page(path: str, token: str | None) -> str:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
            with urllib.request.urlopen(request) as answer:
                text: str = answer.read().decode()
                return text

        try:
            if access is not OPEN:
                with pytest.raises(urllib.error.HTTPError, match="401"):
                    await asyncio.to_thread(page, "/metrics", None)
            token = None if access is OPEN else "a token of some length"
            with pytest.raises(urllib.error.HTTPError, match="404"):
                await asyncio.to_thread(page, "/stores", token)
            assert json.loads(await asyncio.to_thread(page, "/health", token))["status"] == "running"
            queues = json.loads(await asyncio.to_thread(page, "/queues", token))
            assert (queues["jobs"]["acquired"], queues["jobs"]["deliveries"]) == (3, {"1": 2, "2": 1})
            assert await asyncio.to_thread(page, "/readyz", None) == "ok\n"
            counts.failure = "no broker"
            assert await asyncio.to_thread(page, "/healthz", None) == "ok\n"
            with pytest.raises(urllib.error.HTTPError, match="503"):
                await asyncio.to_thread(page, "/readyz", None)
            with pytest.raises(urllib.error.HTTPError, match="503") as failing:
                await asyncio.to_thread(page, "/health", token)
            assert json.loads(failing.value.read()) == {"status": "failing", "failures": {"jobs": "no broker"}}
            return await asyncio.to_thread(page, "/metrics", token)
        finally:
            await server.close()

    text = asyncio.run(body())
    assert 'kohort_queue_records_total{outcome="acquired",queue="jobs"} 3.0' in text
    assert 'kohort_queue_deliveries_total{delivery="2",queue="jobs"} 1.0' in text
    assert 'kohort_queue_dead_letters_total{queue="jobs"} 1.0' in text
    assert 'kohort_queue_in_flight_records{queue="jobs"} 2.0' in text
    assert 'kohort_queue_job_seconds_total{queue="jobs"} 1.5' in text
