"""Leaves a heartbeat with a coordinator that holds it until there is news for a member of a streams group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kohort.client.cluster import Cluster
from kohort.client.errors import ClientError
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.time_limit import event_within
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

log = logging.getLogger(__name__)

_NEWS: Final = "news"
"""The purpose of the connection on which heartbeats are held, and all that is sent after them would be, too."""


class StreamsMemberNews:
    """Asks for news, over a connection of its own, where the coordinator holds such heartbeats.

    Args:
        now_ms: the clock of the membership.
        changed: called when the member may have something to send.
    """

    def __init__(
        self,
        cluster: Cluster,
        membership: StreamsMembershipManager,
        *,
        now_ms: Callable[[], int],
        changed: Callable[[], None],
    ) -> None:
        self._cluster, self._membership, self._now, self._changed = cluster, membership, now_ms, changed
        self._wake_up = asyncio.Event()  # there may be news to ask for

    def wake(self) -> None:
        """There may be news to ask for."""
        self._wake_up.set()

    async def run(self) -> None:
        """Asks whenever it is time to, until it is cancelled."""
        try:
            while True:
                self._wake_up.clear()
                due = self._membership.news_due_at
                if due is not None and due <= self._now():
                    await self._ask()
                    self._changed()
                else:
                    await event_within(self._wake_up, None if due is None else due - self._now())
        except Exception:  # the member goes on without
            log.exception("%s hears of no news any more", self._membership)

    async def _ask(self) -> None:
        membership = self._membership
        try:
            connection = await self._cluster.coordinator_connection(
                CoordinatorKind.GROUP, membership.settings.group_id, _NEWS
            )
            if membership.news_due_at is None:  # such as one that leaves: nothing is to be asked after that
                return
            request = membership.news_request()
            version = connection.version(StreamsGroupHeartbeatRequest)
            # It isn't answered before it has been held.
            timeout_ms = self._cluster.config.request_timeout_ms + membership.heartbeat_interval_ms
            response = await connection.ask(
                request, StreamsGroupHeartbeatResponse, version=version, timeout_ms=timeout_ms
            )
        except (ClientError, KafkaError) as error:
            log.info("%s: no heartbeat is held: %s", membership, error)
            membership.on_news_failure(self._now())
        else:
            membership.on_news(response, self._now())
