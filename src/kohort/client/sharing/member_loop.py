"""Sends a share group member's heartbeats, over a connection of their own to the group's coordinator."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Final

from kohort.client.cluster import Cluster
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError, UnsupportedError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.sharing.membership import HEARTBEAT_ERRORS, ShareMembership, State
from kohort.client.time_limit import event_within
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

log = logging.getLogger("kohort.client.share_consumer")

_GROUP: Final = CoordinatorKind.GROUP


class MemberLoop:
    """Keeps a member in its group.

    Args:
        changed: called when the assignment or the state has changed.
    """

    def __init__(self, cluster: Cluster, membership: ShareMembership, changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._membership = membership
        self._changed = changed
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, topics: Collection[str]) -> None:
        """Reads these topics from now on; none: leaves the group."""
        self._membership.subscribe(topics, _now())
        if topics and (self._task is None or self._task.done()):  # an error has ended it
            self._task = asyncio.create_task(self._run(), name="kohort-share-member")
        self._wake.set()
        self._changed()

    async def close(self, timeout_ms: float) -> None:
        """Leaves the group, within `timeout_ms`."""
        task, self._task = self._task, None
        if task is None:
            return
        self._membership.leave(_now())
        self._wake.set()
        try:
            await asyncio.wait([task], timeout=timeout_ms / 1000)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        membership = self._membership
        try:
            while membership.state is not State.UNSUBSCRIBED or self._task is not None:
                self._wake.clear()
                due = membership.due_at
                if due is not None and due <= _now():
                    before = membership.state, membership.assignment
                    await self._heartbeat()
                    if before != (membership.state, membership.assignment):
                        self._changed()
                    continue
                await event_within(self._wake, None if due is None else due - _now())
        except Exception as error:
            log.exception("the member of share group %r fails", membership.group_id)
            membership.fail(error)
            self._changed()

    async def _heartbeat(self) -> None:
        membership, group_id = self._membership, self._membership.group_id
        leaves = membership.state is State.LEAVING
        try:
            connection = await self._cluster.coordinator_connection(_GROUP, group_id)
            connection.version(ShareGroupHeartbeatRequest)
            leaves = membership.state is State.LEAVING
            request = membership.request()
            response = await connection.ask(request, ShareGroupHeartbeatResponse)
        except (ClientError, KafkaError) as error:
            self._failed(error, leaves=leaves)
            return
        if membership.on_response(request, response, _now()) is Reaction.FIND_COORDINATOR:
            self._cluster.forget_coordinator(_GROUP, group_id)

    def _failed(self, error: ClientError | KafkaError, *, leaves: bool) -> None:
        """There is no answer to a heartbeat.

        Args:
            leaves: whether it was the last one. Another leaves that one still to be sent.
        """
        membership, group_id = self._membership, self._membership.group_id
        if isinstance(error, ConnectionLostError | RequestTimeoutError):
            log.info("share group %r: %s; trying again", group_id, error)
            self._cluster.forget_coordinator(_GROUP, group_id)
        if membership.state is State.LEAVING and not leaves:
            return
        if isinstance(error, UnsupportedError):
            membership.fail(HEARTBEAT_ERRORS.fatal_error(ErrorCode.UNSUPPORTED_VERSION, str(error)))
        elif isinstance(error, KafkaError) and not error.code.retriable:
            membership.fail(HEARTBEAT_ERRORS.fatal_error(error.code, error.detail))
        elif isinstance(error, KafkaError | ConnectionLostError | RequestTimeoutError):
            membership.on_failure(_now())
        else:
            membership.fail(error)


def _now() -> float:
    return asyncio.get_running_loop().time() * 1000
