"""The HTTP server of a worker: its metrics, what it has done of its queues, and whether it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from kohort.http_access import CHALLENGE, HttpAccess, warn_if_exposed
from kohort.spark.errors import ApplicationError
from kohort.spark.queries.bounded_server import BoundedServer, metrics_page
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.metrics import QueueMetrics

_PAGES: Final = {
    "/queues": "what this worker has done of its queues",
    "/health": "whether the worker works",
    "/metrics": "metrics for Prometheus",
    "/healthz": "whether the worker should be left running; no token is needed",
    "/readyz": "whether the worker works; no token is needed",
}


class QueueServer(BoundedServer):
    """Serves pages over HTTP in the worker's event loop.

    Args:
        queues: the counts that it shows.
        host, port: where it listens, as in `listening_sockets`.
        access: who may ask.
    """

    def __init__(self, queues: Sequence[QueueCounts], host: str, port: int, access: HttpAccess) -> None:
        super().__init__(self._handle, host, port, access)
        self._queues = queues
        self._metrics = QueueMetrics(queues)

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            ApplicationError: the port is in use, or may not be listened on.
        """
        host, port = self._address
        try:
            await super().start()
        except OSError as error:
            await self.close()
            raise ApplicationError(
                f'application_server="{host}:{port}" can\'t be listened on: {error.strerror or error}'
            ) from error
        warn_if_exposed(
            "the HTTP server of the worker",
            host,
            self._access,
            "application_server_token_file, or application_server_certfile with application_server_cafile",
        )

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        if request.rel_url.raw_path in ("/healthz", "/readyz") and request.method in ("GET", "HEAD"):
            return self._check(request.rel_url.raw_path)
        if not self._access.allows(request.headers.get("Authorization")):
            return web.Response(status=401, text="a token is needed\n", headers={"WWW-Authenticate": CHALLENGE})
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET and HEAD\n", headers={"Allow": "GET, HEAD"})
        response = self._page(request.rel_url.raw_path.strip("/"))
        response.headers["Cache-Control"] = "no-store"
        return response

    def _check(self, path: str) -> web.Response:
        """For what supervises workers, and has no token: says no more than a word."""
        failing = path == "/readyz" and any(each.failure is not None for each in self._queues)
        return web.Response(text="failing\n" if failing else "ok\n", status=503 if failing else 200)

    def _page(self, page: str) -> web.Response:
        match page:
            case "metrics":
                return metrics_page(self._metrics.text())
            case "queues":
                return _json({each.topic: each.page() for each in self._queues})
            case "health":
                failures = {each.topic: each.failure for each in self._queues if each.failure is not None}
                status = "failing" if failures else "running"
                return _json({"status": status, "failures": failures}, 503 if failures else 200)
            case "":
                return _json(_PAGES)
        return web.Response(status=404, text=f"there are {', '.join(_PAGES)}\n")


def _json(page: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.json_response(page, status=status)
