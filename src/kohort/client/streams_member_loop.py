"""Sends what a member of a streams application has to send: the I/O of `kohort.client.streams`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kohort.client.cluster import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError, UnsupportedError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.streams.membership import StreamsMembership
from kohort.client.streams.transitions import State
from kohort.client.time_limit import event_within
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Response

if TYPE_CHECKING:
    from kohort.client.streams_group_leader import StreamsGroupLeader
    from kohort.client.streams_member_news import StreamsMemberNews

log = logging.getLogger(__name__)

_GROUP: Final = CoordinatorKind.GROUP


def now_ms() -> int:
    """The time of the event loop's clock, in ms."""
    return int(asyncio.get_running_loop().time() * 1000)


class StreamsMemberLoop:
    """Sends a member's requests when they are due, one at a time, and hands it the responses.

    Args:
        cluster: started before `run`.
        changed: called when there may be events for the application.

    Attributes:
        leader: of a member of a classic group: it places the tasks when the member is to.
        news: of a member of a streams group: it asks a coordinator for news.
    """

    def __init__(
        self,
        cluster: Cluster,
        membership: StreamsMembership,
        changed: Callable[[], None],
    ) -> None:
        self._cluster, self._membership, self._changed = cluster, membership, changed
        self.leader: StreamsGroupLeader | None = None
        self.news: StreamsMemberNews | None = None
        self._response_received = asyncio.Event()  # the coordinator has responded, or never will
        self._wake_up = asyncio.Event()  # there may be something to send

    def wake(self) -> None:
        """There may be something to send."""
        self._wake_up.set()

    def heartbeat_soon(self) -> None:
        """Sends a heartbeat soon, such as over a new connection when the old one has ended."""
        self._membership.heartbeat_soon(now_ms())
        self.wake()

    async def heartbeat_now(self) -> None:
        """Sends a heartbeat soon, and waits for its response."""
        self._response_received.clear()
        self.heartbeat_soon()
        await self._response_received.wait()

    async def run(self) -> None:
        """Sends requests until the member has left or failed."""
        membership, leader, news = self._membership, self.leader, self.news
        beside = []
        if leader is not None:
            beside.append(asyncio.create_task(leader.watch(), name="kohort-topics-of-group"))
        if news is not None:
            beside.append(asyncio.create_task(news.run(), name="kohort-streams-news"))
        try:
            while not membership.ended:
                self._wake_up.clear()
                if leader is not None and leader.due:
                    await self._place(leader)
                    continue
                due = membership.due_at
                if due is not None and due <= now_ms():
                    await self._exchange()
                    self._response_received.set()
                    self._changed()
                    if news is not None:
                        news.wake()
                else:
                    await event_within(self._wake_up, None if due is None else due - now_ms())
        except Exception as error:
            log.exception("%s failed", membership)
            membership.fail(error, now_ms())
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._response_received.set()
            self._changed()

    async def _place(self, leader: StreamsGroupLeader) -> None:
        """Has the tasks placed, unless the member wants to leave before."""
        placing = asyncio.create_task(leader.place(now_ms), name="kohort-placement")
        placing.add_done_callback(lambda _: self.wake())
        try:
            while leader.due and not placing.done():
                self._wake_up.clear()
                await self._wake_up.wait()
            if placing.done():
                await placing
        finally:
            placing.cancel()
            await asyncio.gather(placing, return_exceptions=True)

    async def _exchange(self) -> None:
        """Sends the request that is due, and applies its response."""
        membership, group_id = self._membership, self._membership.settings.group_id
        purpose = membership.call(now_ms()).purpose
        try:
            connection = await self._cluster.coordinator_connection(_GROUP, group_id, purpose)
            # Another request may be due now.
            if membership.due_at is None or membership.call(now_ms()).purpose != purpose:
                return
            if membership.settings.disconnect_timeout_ms is not None:
                connection.on_ended.add(self.heartbeat_soon)
            response = await self._ask(connection)
        except (ConnectionLostError, RequestTimeoutError) as error:
            log.info("%s: %s; trying again", membership, error)
            self._cluster.forget_coordinator(_GROUP, group_id)
            membership.on_failure(now_ms())
            return
        except KafkaError as error:
            if error.code.retriable:
                membership.on_failure(now_ms())
            else:
                membership.fail(membership.errors.fatal_error(error.code, error.detail), now_ms())
            return
        except UnsupportedError as error:
            membership.fail(membership.errors.fatal_error(ErrorCode.UNSUPPORTED_VERSION, str(error)), now_ms())
            return
        except ClientError as error:
            membership.fail(error, now_ms())
            return
        if response is None:
            membership.on_failure(now_ms())
            return
        try:
            if membership.on_response(response, now_ms()) is Reaction.FIND_COORDINATOR:
                self._cluster.forget_coordinator(_GROUP, group_id)
        except ValueError as error:
            log.warning("%s: %s: a response that makes no sense: %s", membership, connection.broker, error)
            await connection.close()

    async def _ask(self, connection: Connection) -> Response | None:
        """Asks, and returns the response; None if the member wants to leave before a long one has come."""
        now = now_ms()
        call = self._membership.call(now)
        version = connection.version(call.request)
        request = self._membership.request(now, version)
        response = connection.send(request, call.response, version=version, timeout_ms=call.timeout_ms)
        try:
            if call.timeout_ms is not None:
                response.add_done_callback(lambda _: self.wake())
                while not response.done():
                    if self._membership.state is State.DEPARTING:
                        return None
                    self._wake_up.clear()
                    await self._wake_up.wait()
            return await response
        finally:
            response.cancel()
