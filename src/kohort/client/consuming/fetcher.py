"""A fetcher: asks one broker for its partitions, again and again, and always has the next answer on its way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from kohort.client.connection import Connection
from kohort.client.consuming.fetch_session import BY_ID, Ask, FetchSession
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError
from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID

if TYPE_CHECKING:
    from kohort.client.consuming.fetchers import Fetchers

__all__ = ["Fetcher"]

log = logging.getLogger("kohort.client.consumer")

_PURPOSE: Final = "fetch"
_SHORT_WAIT_MS: Final = 10
"""How long a broker may hold an answer back while more partitions are about to be asked for."""


class Fetcher:
    """Fetches from one broker, in a task of its own, until `close`.

    Args:
        node_id: the broker.
        fetchers: says what to fetch, and takes what comes.
    """

    def __init__(self, node_id: int, fetchers: Fetchers) -> None:
        self._node_id = node_id
        self._fetchers = fetchers
        self._session = FetchSession()
        self._look = asyncio.Event()
        self._in_flight: asyncio.Future[FetchResponse] | None = None
        self._idle = False
        self._task = asyncio.create_task(self._run(), name=f"kohort-fetcher-{node_id}")

    async def close(self) -> None:
        """Stop; what is under way is dropped."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def look_again(self) -> None:
        """What is wanted of the broker may have changed."""
        self._look.set()
        flying = self._in_flight
        if flying is None or flying.done():
            return
        # An answer that nobody wants any more would hold up the next question for as long as the broker likes.
        asked, wanted = self._session.asked, self._fetchers.wanted(self._node_id)
        if wanted and not any(_same_place(wanted.get(at), ask) for at, ask in asked.items()):
            flying.cancel()

    def look_again_for_room(self) -> None:
        """There's more room for what it brings."""
        if self._idle:
            self._look.set()

    async def _run(self) -> None:
        backoff = self._fetchers.cluster.backoff()
        while True:
            self._look.clear()
            wanted = self._fetchers.wanted(self._node_id)
            room = self._fetchers.room()
            if not wanted or room <= 0:
                await self._wait(self._fetchers.retry_at(self._node_id) if not wanted else None)
                continue
            try:
                connection = await self._fetchers.cluster.connection(self._node_id, _PURPOSE)
                await self._fetch(connection, wanted, room)
                backoff.reset()
                continue
            except (ConnectionLostError, RequestTimeoutError) as error:
                log.info("fetching: %s", error)
                self._fetchers.lost(self._node_id)
            except Exception as error:  # whatever it is, the user has to know why nothing comes
                if not isinstance(error, ClientError):
                    log.exception("fetching from broker %d fails", self._node_id)
                self._fetchers.failed(self._node_id, error)
            self._session.reset()
            await asyncio.sleep(backoff.next() / 1000)

    async def _wait(self, until: float | None) -> None:
        """Wait until there's something to fetch, or for a time, in ms of the loop's clock."""
        now = self._fetchers.now
        if until is not None and until <= now:
            until = None  # it isn't that which is waited for
        self._idle = True
        try:
            async with time_limit(None if until is None else (until - now) / 1000):
                await self._look.wait()
        except TimeoutError:
            pass
        finally:
            self._idle = False

    async def _fetch(self, connection: Connection, wanted: dict[TopicPartition, Ask], room: int) -> None:
        """Ask once, and hand over what comes."""
        fetchers, settings = self._fetchers, self._fetchers.settings
        version = connection.version(FetchRequest)
        by_id = version >= BY_ID and all(ask.topic_id != NO_UUID for ask in wanted.values())
        if not by_id:
            version = min(version, BY_ID - 1)
        request = self._session.request(wanted, by_id=by_id)
        request.max_wait_ms = settings.fetch_max_wait_ms
        if fetchers.unsettled():
            request.max_wait_ms = min(request.max_wait_ms, _SHORT_WAIT_MS)
        request.min_bytes = settings.fetch_min_bytes
        request.max_bytes = min(settings.fetch_max_bytes, room)
        request.isolation_level = int(settings.committed)
        request.rack_id = fetchers.cluster.config.client_rack
        timeout_ms = fetchers.cluster.config.request_timeout_ms + request.max_wait_ms
        flying = connection.send(request, FetchResponse, version=version, timeout_ms=timeout_ms)
        self._in_flight = flying
        try:
            await asyncio.wait([flying])
        except asyncio.CancelledError:
            # The broker may hold the answer back, and the connection's next user would have to wait for it.
            flying.cancel()
            await connection.close()
            raise
        finally:
            self._in_flight = None
        if flying.cancelled():
            self._session.reset()
            await connection.close()
            return
        answer = flying.result()
        fetchers.learn_brokers(answer)
        came = self._session.answered(answer)
        if answer.error_code:
            log.debug("broker %d: the fetch session ends: error %d", self._node_id, answer.error_code)
            if answer.error_code not in _SESSION_ERRORS:
                raise ConnectionLostError(f"{connection.broker}: Fetch is refused with error {answer.error_code}")
            if answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                fetchers.cluster.request_refresh()
        for at, ask, read in came:
            fetchers.took(self._node_id, at, ask, read)


_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # fmt: skip


def _same_place(wanted: Ask | None, asked: Ask) -> bool:
    return wanted is not None and wanted[:2] == asked[:2]
