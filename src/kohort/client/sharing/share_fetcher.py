"""A share fetcher: fetches from one broker and acknowledges to it, in one session, one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from kohort.client.connection import Connection
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError, kafka_error
from kohort.client.sharing.share_session import ShareSession
from kohort.client.time_limit import event_within
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

if TYPE_CHECKING:
    from kohort.client.sharing.share_fetchers import ShareFetchers, Turn
    from kohort.client.sharing.shared_partitions import SharedPartition

log = logging.getLogger("kohort.client.share_consumer")

_PURPOSE: Final = "share"
_RENEWS: Final = 2
"""The first version of ShareAcknowledge with renewal (KIP-1222)."""

_SESSION_ENDED: Final = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})


class ShareFetcher:
    """Asks one broker, in a task of its own, until `close`.

    Args:
        fetchers: says what to ask, and takes the responses.

    Attributes:
        renews: whether the broker renews locks; None before the first connection.
    """

    def __init__(self, node_id: int, fetchers: ShareFetchers) -> None:
        self._node_id = node_id
        self._fetchers = fetchers
        self._session = ShareSession(fetchers.settings.group_id, fetchers.membership.member_id)
        self._connection: Connection | None = None
        self.renews: bool | None = None
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"kohort-share-fetcher-{node_id}")

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def finish(self) -> asyncio.Task[None]:
        """Returns the task, which ends once `closing` fetchers have sent everything, and the session is closed."""
        self._wake.set()
        return self._task

    async def close(self) -> None:
        """Stops at once. The broker releases what it had locked when the connection ends."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._connection is not None:
            await self._connection.close()

    async def _run(self) -> None:
        fetchers, session = self._fetchers, self._session
        backoff = fetchers.cluster.backoff()
        while True:
            self._wake.clear()
            if self._connection is not None and self._connection.closed and session.open:
                self._lost(
                    ConnectionLostError(f"{self._connection.broker}: the connection ended, and with it the locks")
                )
            turn = fetchers.turn(self._node_id, renews=bool(self.renews))
            try:
                if turn.fetch is not None:
                    await self._fetch(turn)
                elif turn.acknowledge:
                    await self._acknowledge(turn)
                elif fetchers.closing and turn.until is None:
                    await self._close_session()
                    return
                else:
                    await self._wait(turn.until)
                    continue
                backoff.reset()
                continue
            except (ConnectionLostError, RequestTimeoutError) as error:
                log.info("sharing: %s", error)
                self._lost(error)
                fetchers.retry_later(self._node_id)
            except Exception as error:  # the user has to know why no records come
                if not isinstance(error, ClientError | KafkaError):
                    log.exception("sharing from broker %d fails", self._node_id)
                self._lost(error)
                fetchers.fail(error)
            if fetchers.closing:
                return
            await asyncio.sleep(backoff.next() / 1000)

    async def _wait(self, until: float | None) -> None:
        await event_within(self._wake, None if until is None else max(0.0, until - self._fetchers.now))

    def _lost(self, error: Exception) -> None:
        self._session.reset()
        self._fetchers.session_lost(self._node_id, error)

    async def _connected(self) -> Connection:
        """Returns the connection; a session doesn't live longer than its own."""
        connection = await self._fetchers.cluster.connection(self._node_id, _PURPOSE)
        if connection is not self._connection:
            if self._session.open:
                self._lost(ConnectionLostError(f"{connection.broker}: the connection ended, and with it the locks"))
            self._connection = connection
            self.renews = connection.version(ShareAcknowledgeRequest) >= _RENEWS
        return connection

    async def _fetch(self, turn: Turn) -> None:
        fetchers, settings = self._fetchers, self._fetchers.settings
        connection = await self._connected()
        wanted = [each for each in turn.fetch or () if each.node_id == self._node_id]
        asked = self._to_acknowledge(turn) if self._session.open else []
        request = self._session.fetch(
            [each.key for each in wanted], {each.key: each.book.take(fetchers.now) for each in asked}
        )
        request.max_wait_ms = turn.max_wait_ms
        request.min_bytes = settings.fetch_min_bytes
        request.max_bytes = settings.fetch_max_bytes
        request.max_records = request.batch_size = settings.max_poll_records
        request.share_acquire_mode = int(settings.strict)
        timeout_ms = fetchers.cluster.config.request_timeout_ms + request.max_wait_ms
        response = await connection.ask(
            request, ShareFetchResponse, version=connection.version(ShareFetchRequest), timeout_ms=timeout_ms
        )
        if self._succeeded(response.error_code, response.error_message):
            fetchers.fetched(self._node_id, asked, response)

    async def _acknowledge(self, turn: Turn) -> None:
        connection = await self._connected()
        asked = self._to_acknowledge(turn)
        taken = {each.key: each.book.take(self._fetchers.now) for each in asked}
        if not self.renews:
            renewing = [each for each in asked if any(ack.renews for ack in taken[each.key])]
            for each in renewing:
                self._fetchers.renewals_unsupported(each)
                asked.remove(each)
                del taken[each.key]
        if not asked:
            return
        request = self._session.acknowledge(taken)
        response = await connection.ask(request, ShareAcknowledgeResponse)
        if self._succeeded(response.error_code, response.error_message):
            self._fetchers.acknowledged(self._node_id, asked, response)

    def _to_acknowledge(self, turn: Turn) -> list[SharedPartition]:
        """What is still to be acknowledged here: a partition may have moved while a connection was made."""
        return [each for each in turn.acknowledge if each.node_id == self._node_id and each.book.sendable]

    def _succeeded(self, code: int, message: str | None) -> bool:
        """Counts a request of the session; an error of all of it ends the session."""
        if not code:
            self._session.succeeded()
            return True
        error = kafka_error(code, message)
        log.info("the share session with broker %d ends: %s", self._node_id, error)
        if error.code not in _SESSION_ENDED:
            if error.code.retriable:
                raise ConnectionLostError(f"broker {self._node_id}: {error}") from error
            raise error
        self._lost(error)
        return False

    async def _close_session(self) -> None:
        """Tells the broker to release what it had locked."""
        connection = self._connection
        if not self._session.open or connection is None or connection.closed:
            return
        await connection.ask(self._session.acknowledge({}, close=True), ShareAcknowledgeResponse)
        self._session.reset()
