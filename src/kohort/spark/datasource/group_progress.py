"""Commits a stream's progress to a consumer group, so that any tool shows its lag."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.errors import ClientError
from kohort.client.loop_thread import LoopThread
from kohort.protocol.errors import KafkaError
from kohort.spark.datasource.stream_offsets import Offsets

log = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 5_000


class GroupProgress:
    """Commits offsets as a consumer without a group's membership does.

    A stream goes on where its checkpoint says, never where the group is. So a commit that fails only leaves the group
    behind until the next one, and is a warning.
    """

    def __init__(self, config: ClientConfig, group_id: str) -> None:
        self._config = config
        self._group_id = group_id
        self._thread: LoopThread | None = None
        self._admin: Admin | None = None

    def commit(self, offsets: Offsets) -> None:
        """Commits the next offset to read of each partition."""
        if not offsets:
            return
        if self._thread is None:
            self._thread = LoopThread("kohort-group-progress")
        try:
            self._thread.run(self._commit(offsets))
        except (KafkaError, ClientError) as error:
            log.warning("group %s: offsets of the stream can't be committed: %s", self._group_id, error)

    def close(self) -> None:
        """Closes the connections. May be called twice."""
        thread, admin = self._thread, self._admin
        self._thread = self._admin = None
        if thread is not None:
            if admin is not None:
                thread.run(admin.close())
            thread.close()

    async def _commit(self, offsets: Offsets) -> None:
        if self._admin is None:
            admin = Admin(replace(self._config, bootstrap_timeout_ms=_TIMEOUT_MS), default_api_timeout_ms=_TIMEOUT_MS)
            await admin.start()
            self._admin = admin
        await self._admin.group_offsets.alter(self._group_id, dict(offsets))
