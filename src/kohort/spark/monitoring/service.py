"""All of it together: what an instance starts so that people can see what it does and ask what it knows."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence

from kohort.spark.monitoring.events import Listener
from kohort.spark.monitoring.journal_writer import JournalWriter
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.monitoring.progress_line import ProgressLine
from kohort.spark.queries.peers import address
from kohort.spark.queries.queryable import Queryable
from kohort.spark.queries.server import QueryServer
from kohort.spark.runtime.errors import ApplicationError
from kohort.streams.endpoint import Endpoint

__all__ = ["Service"]

log = logging.getLogger(__name__)


class Service:
    """The live line, the journal and the HTTP server of an instance.

        service = Service("flight-delays", instance, application_server=("localhost", 8080))
        await service.start()          # before the member joins its group, which is told `service.endpoint`
        ...                            # everything that happens is told to all of service.listeners, in their order
        await service.close()

    Args:
        application_id: of the application.
        instance: whose stores are asked for.
        application_server: host and port where others reach the instance; port 0 takes a free one. None: no server.
        journal: the file that everything is written to; None for none.
        progress: whether to show the live line, or where there is no terminal plain ones.

    Attributes:
        listeners: whom the instance tells what happens.
        endpoint: where others reach the instance, once it is started; None without a server.

    Raises:
        OSError: the journal can't be written.
    """

    def __init__(
        self,
        application_id: str,
        instance: Queryable,
        *,
        application_server: tuple[str, int] | None = None,
        journal: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> None:
        self._instance = instance
        self._application_server = application_server
        self._overview = Overview(instance=instance)
        self._metrics = Metrics(application_id, self._overview)
        self._journal = None if journal is None else JournalWriter(journal)
        self._progress = ProgressLine(application_id, self._overview) if progress else None
        self._server: QueryServer | None = None
        self.endpoint: Endpoint | None = None
        listeners: Sequence[Listener | None] = (self._overview, self._metrics, self._journal, self._progress)
        self.listeners: tuple[Listener, ...] = tuple(each for each in listeners if each is not None)

    async def start(self) -> None:
        """Listen, and begin to show the line.

        The server listens on the address that others reach the instance by; if that is none of this machine's, as in a
        container, on all of them.

        Raises:
            ApplicationError: the port is in use, or may not be listened on.
        """
        if self._application_server is not None:
            host, port = self._application_server
            try:
                self._server = await self._listening(host, port)
            except OSError as error:
                raise ApplicationError(
                    f'application_server="{host}:{port}": this instance can\'t answer queries there, since its port'
                    f" {_why(error)}: give each instance on a machine a port of its own, or leave it out"
                ) from error
            self.endpoint = Endpoint(host, self._server.port)
            log.info("queries, metrics and health: http://%s/", address(self.endpoint))
        if self._progress is not None:
            self._progress.start()

    async def close(self) -> None:
        """End all of it. May be called twice, and when it wasn't started."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()
        if self._progress is not None:
            self._progress.close()
        if self._journal is not None:
            self._journal.close()

    async def _listening(self, host: str, port: int) -> QueryServer:
        server = QueryServer(self._instance, self._overview, self._metrics, host, port)
        try:
            await server.start()
        except BaseException:
            await server.close()
            raise
        return server


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "is in use"
    return f"can't be listened on ({error.strerror or error})"
