"""A fetcher: fetches its partitions from one broker in a loop, so that a request is always in flight."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from kohort.client.connection import Connection
from kohort.client.consuming.fetch_session import BY_ID, FetchSession, PartitionFetch
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError
from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID

if TYPE_CHECKING:
    from kohort.client.consuming.fetchers import Fetchers

log = logging.getLogger("kohort.client.consumer")

_PURPOSE: Final = "fetch"
_SHORT_WAIT_MS: Final = 10
"""How long a broker may hold a response back while more partitions are about to be fetched."""


class Fetcher:
    """Fetches from one broker, in a task of its own, until `close`.

    Args:
        fetchers: says what to fetch, and takes the responses.
    """

    def __init__(self, node_id: int, fetchers: Fetchers) -> None:
        self._node_id = node_id
        self._fetchers = fetchers
        self._session = FetchSession()
        self._wake = asyncio.Event()
        self._in_flight: asyncio.Future[FetchResponse] | None = None
        self._idle = False
        self._task = asyncio.create_task(self._run(), name=f"kohort-fetcher-{node_id}")

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def wake(self) -> None:
        """The partitions or positions to fetch may have changed."""
        self._wake.set()
        future = self._in_flight
        if future is None or future.done():
            return
        # A response that is no longer wanted would delay the next request for as long as the broker holds it back.
        requested, fetches = self._session.requested, self._fetchers.to_fetch(self._node_id)
        if fetches and not any(_same_position(fetches.get(at), fetch) for at, fetch in requested.items()):
            future.cancel()

    def wake_for_room(self) -> None:
        if self._idle:
            self._wake.set()

    async def _run(self) -> None:
        backoff = self._fetchers.cluster.backoff()
        while True:
            self._wake.clear()
            fetches = self._fetchers.to_fetch(self._node_id)
            room = self._fetchers.room()
            if not fetches or room <= 0:
                await self._wait(self._fetchers.retry_at(self._node_id) if not fetches else None)
                continue
            try:
                connection = await self._fetchers.cluster.connection(self._node_id, _PURPOSE)
                await self._fetch(connection, fetches, room)
                backoff.reset()
                continue
            except (ConnectionLostError, RequestTimeoutError) as error:
                log.info("fetching: %s", error)
                self._fetchers.lost(self._node_id)
            except Exception as error:  # the user has to know why no records come
                if not isinstance(error, ClientError):
                    log.exception("fetching from broker %d fails", self._node_id)
                self._fetchers.failed(self._node_id, error)
            self._session.reset()
            await asyncio.sleep(backoff.next() / 1000)

    async def _wait(self, until: float | None) -> None:
        """Waits until there's something to fetch, or until a time, in ms of the loop's clock."""
        now = self._fetchers.now
        if until is not None and until <= now:
            until = None  # the retry is due: the wait is for something else
        self._idle = True
        try:
            async with time_limit(None if until is None else (until - now) / 1000):
                await self._wake.wait()
        except TimeoutError:
            pass
        finally:
            self._idle = False

    async def _fetch(self, connection: Connection, fetches: dict[TopicPartition, PartitionFetch], room: int) -> None:
        fetchers, settings = self._fetchers, self._fetchers.settings
        version = connection.version(FetchRequest)
        by_id = version >= BY_ID and all(fetch.topic_id != NO_UUID for fetch in fetches.values())
        if not by_id:
            version = min(version, BY_ID - 1)
        request = self._session.request(fetches, by_id=by_id)
        request.max_wait_ms = settings.fetch_max_wait_ms
        if fetchers.expects_more():
            request.max_wait_ms = min(request.max_wait_ms, _SHORT_WAIT_MS)
        request.min_bytes = settings.fetch_min_bytes
        request.max_bytes = min(settings.fetch_max_bytes, room)
        request.isolation_level = int(settings.committed)
        request.rack_id = fetchers.cluster.config.client_rack
        timeout_ms = fetchers.cluster.config.request_timeout_ms + request.max_wait_ms
        future = connection.send(request, FetchResponse, version=version, timeout_ms=timeout_ms)
        self._in_flight = future
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            # The broker may hold the response back, and the connection's next request would wait for it.
            future.cancel()
            await connection.close()
            raise
        finally:
            self._in_flight = None
        if future.cancelled():
            self._session.reset()
            await connection.close()
            return
        response = future.result()
        fetchers.learn_brokers(response)
        results = self._session.handle_response(response)
        if response.error_code:
            log.debug("broker %d: the fetch session ends: error %d", self._node_id, response.error_code)
            if response.error_code not in _SESSION_ERRORS:
                raise ConnectionLostError(f"{connection.broker}: Fetch is refused with error {response.error_code}")
            if response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                fetchers.cluster.request_refresh()
        for at, fetch, data in results:
            fetchers.handle_partition(self._node_id, at, fetch, data)


_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # fmt: skip


def _same_position(wanted: PartitionFetch | None, requested: PartitionFetch) -> bool:
    return wanted is not None and wanted[:2] == requested[:2]
