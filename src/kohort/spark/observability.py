"""Starts what makes an instance observable: the live line, the journal, metrics, and the HTTP server.

Rich and aiohttp, which take memory and time to load, are loaded for instances that have a live line or a server.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kohort.http_access import OPEN, HttpAccess, warn_if_exposed
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import Listener
from kohort.spark.monitoring.journal_writer import JournalWriter
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.queries.queryable import Queryable, standby_lags
from kohort.streams.endpoint import Endpoint

if TYPE_CHECKING:
    from kohort.spark.monitoring.progress_line import ProgressLine
    from kohort.spark.queries.http_server import QueryServer

log = logging.getLogger(__name__)


class Observability:
    """The live line, the journal and the HTTP server of an instance.

        observability = Observability("flight-delays", instance, application_server=("localhost", 8080))
        await observability.start()  # before the member joins its group, to which it sends `observability.endpoint`
        ...  # events go to all of observability.listeners, in their order
        await observability.close()

    Args:
        application_id: of the application.
        instance: whose stores and lags are read.
        application_server: host and port where others reach the instance; port 0 takes a free one. None: no server.
        access: who may ask the server.
        journal: the file that events are written to; None for none.
        progress: whether to show the live line, or plain lines where there is no terminal.

    Attributes:
        listeners: what the instance has to call.
        endpoint: where others reach the instance, once started; None without a server.
        registry: Prometheus' registry of the instance's metrics.

    Raises:
        OSError: the journal can't be written.
    """

    def __init__(
        self,
        application_id: str,
        instance: Queryable,
        *,
        application_server: tuple[str, int] | None = None,
        access: HttpAccess = OPEN,
        journal: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> None:
        self._instance = instance
        self._application_server = application_server
        self._access = access
        self._overview = Overview(measured_lags=instance.lags)
        self._metrics = Metrics(application_id, self._overview, partial(standby_lags, instance))
        self.registry = self._metrics.registry
        self._journal = None if journal is None else JournalWriter(journal)
        self._progress = _progress_line(application_id, self._overview) if progress else None
        self._server: QueryServer | None = None
        self.endpoint: Endpoint | None = None
        listeners = (self._overview, self._metrics, self._journal, self._progress)
        self.listeners: Sequence[Listener] = [each for each in listeners if each is not None]

    async def start(self) -> None:
        """Starts the server and the live line.

        The server listens on the address where others reach the instance. If that isn't one of this machine's, as in a
        container, it listens on all of them.

        Raises:
            ApplicationError: the port is in use, or may not be listened on.
        """
        if self._application_server is not None:
            from kohort.spark.queries.peer_client import address

            host, port = self._application_server
            try:
                self._server = await self._started_server(host, port)
            except OSError as error:
                raise ApplicationError(
                    f'application_server="{host}:{port}": this instance can\'t answer queries there, since its port'
                    f" {_why(error)}: give each instance on a machine a port of its own, or leave it out"
                ) from error
            self.endpoint = Endpoint(host, self._server.port)
            warn_if_exposed(
                "the HTTP server of the instance",
                host,
                self._access,
                "application_server_token_file, or application_server_certfile with application_server_cafile",
            )
            log.info("queries, metrics and health: %s://%s/", self._access.scheme, address(self.endpoint))
        if self._progress is not None:
            self._progress.start()

    async def close(self) -> None:
        """Closes all of it. May be called twice, and before it is started."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()
        if self._progress is not None:
            self._progress.close()
        if self._journal is not None:
            self._journal.close()

    async def _started_server(self, host: str, port: int) -> QueryServer:
        from kohort.spark.queries.http_server import QueryServer

        server = QueryServer(self._instance, self._overview, self._metrics, host, port, access=self._access)
        try:
            await server.start()
        except BaseException:
            await server.close()
            raise
        return server


def _progress_line(application_id: str, overview: Overview) -> ProgressLine:
    from kohort.spark.monitoring.progress_line import ProgressLine

    return ProgressLine(application_id, overview)


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "is in use"
    return f"can't be listened on ({error.strerror or error})"
