"""The metrics of a worker, for Prometheus, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kohort.http_access import CHALLENGE, HttpAccess, warn_if_exposed
from kohort.spark.errors import ApplicationError
from kohort.spark.queries.http_server import BoundedServer
from kohort.spark.queries.listening_sockets import listening_sockets
from kohort.spark.queues.counts import QueueCounts

_OUTCOMES: Final = ("acquired", "accepted", "released", "rejected", "lost")
_COUNTERS: Final = (
    ("renewals", "renewed", "Locks that were renewed, by record."),
    ("epochs", "epochs", "Epochs that were acknowledged."),
    ("failed_jobs", "failed_jobs", "Jobs that failed."),
    ("job_seconds", "job_s", "How long jobs took, in all."),
)


class QueueMetrics:
    """Exports the counts of queues in Prometheus' format."""

    def __init__(self, queues: Sequence[QueueCounts]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Counts(queues))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Counts(Collector):
    """The counts, looked up on each scrape."""

    def __init__(self, queues: Sequence[QueueCounts]) -> None:
        self._queues = queues

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise the registry would collect the metrics to learn their names

    def collect(self) -> Iterator[Metric]:
        records = CounterMetricFamily("kohort_queue_records", "Records, by outcome.", labels=["queue", "outcome"])
        in_flight = GaugeMetricFamily("kohort_queue_in_flight_records", "Records worked on now.", labels=["queue"])
        for each in self._queues:
            for outcome in _OUTCOMES:
                records.add_metric([each.topic, outcome], getattr(each, outcome))
            in_flight.add_metric([each.topic], each.in_flight)
        yield records
        yield in_flight
        for name, attribute, documentation in _COUNTERS:
            counter = CounterMetricFamily(f"kohort_queue_{name}", documentation, labels=["queue"])
            for each in self._queues:
                counter.add_metric([each.topic], getattr(each, attribute))
            yield counter


class MetricsServer:
    """Serves `/metrics` over HTTP in the worker's event loop.

    Args:
        host, port: where it listens, as in `listening_sockets`.
        access: who may ask.
    """

    def __init__(self, metrics: QueueMetrics, host: str, port: int, access: HttpAccess) -> None:
        self._metrics = metrics
        self._host, self._given_port = host, port
        self._access = access
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            ApplicationError: the port is in use, or may not be listened on.
        """
        self._runner = web.ServerRunner(BoundedServer(self._handle, access_log=None), shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            for each in await listening_sockets(self._host, self._given_port):
                await web.SockSite(self._runner, each, ssl_context=self._access.server).start()
        except OSError as error:
            await self.close()
            raise ApplicationError(
                f'application_server="{self._host}:{self._given_port}" can\'t be listened on: {error.strerror or error}'
            ) from error
        warn_if_exposed(
            "the HTTP server of the worker",
            self._host,
            self._access,
            "application_server_token_file, or application_server_certfile with application_server_cafile",
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._runner is not None, "the server isn't started"
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Stops. May be called twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        if not self._access.allows(request.headers.get("Authorization")):
            return web.Response(status=401, text="a token is needed\n", headers={"WWW-Authenticate": CHALLENGE})
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET and HEAD\n", headers={"Allow": "GET, HEAD"})
        if request.rel_url.raw_path != "/metrics":
            return web.Response(status=404, text="there is /metrics\n")
        response = web.Response(body=self._metrics.text(), charset="utf-8")
        response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8"
        response.headers["Cache-Control"] = "no-store"
        return response
