"""Ends transactions that instances have left open which are no longer in the group.

An instance that takes over a task has to know what of its work counts, and readers of the outputs wait for what is
undecided.
The brokers end such transactions by themselves, after the transaction's timeout; this need not be waited for. An
instance that was only thought dead is fenced by it: its tasks begin from what is committed, if it still has any.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterable
from typing import Final

from kohort.client.admin import Admin
from kohort.client.errors import ClientError, PartialFailureError, UnsupportedError
from kohort.protocol.errors import KafkaError

log = logging.getLogger(__name__)

_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TIMEOUT_MS: Final = 10_000
_DESCRIBED_AT_MOST: Final = 10
_DESCRIBE_AGAIN_S: Final = 0.2


def transactional_id(application_id: str, process_id: str, chain: str) -> str:
    """The transactional id of a chain in a process, which has it to itself, and has it again after a restart."""
    return f"{application_id}-{process_id}-{chain}"


def dangling(application_id: str, ids: Iterable[str], processes: Iterable[str]) -> list[str]:
    """Which of some transactional ids are the application's, and of none of these processes."""
    pattern = re.compile(f"{re.escape(application_id)}-({_UUID})-.+")
    alive = set(processes)
    return [each for each in ids if (match := pattern.fullmatch(each)) is not None and match[1] not in alive]


class DanglingTransactions:
    """Ends transactions of instances that are gone: once for all tasks that are activated at a time."""

    def __init__(self, admin: Admin, application_id: str, process_id: str) -> None:
        self._admin, self._application_id, self._process_id = admin, application_id, process_id
        self._lock = asyncio.Lock()
        self._looked_at = float("-inf")

    async def end(self) -> None:
        """Returns when they were looked for, and ended, since this was called."""
        asked = time.monotonic()
        async with self._lock:
            if self._looked_at < asked:
                looked_at = time.monotonic()
                await end_dangling_transactions(self._admin, self._application_id, self._process_id)
                self._looked_at = looked_at


async def end_dangling_transactions(admin: Admin, application_id: str, own_process: str) -> list[str]:
    """End the open transactions of instances that have left or died; their transactional ids.

    A failure is logged only: the transactions' timeout does the same, later.
    """
    try:
        # The transactions first: one that is open now and whose process isn't in the group then has no owner.
        open_ones = await _open_transactions(admin, application_id)
        if not open_ones:
            return []
        alive = await _processes(admin, application_id)
        if alive is None:
            log.info("the group doesn't say which processes it has; transactions that are left open will time out")
            return []
        left = dangling(application_id, open_ones, {*alive, own_process})
        if left:
            log.warning("ending transactions that were left open by instances which are gone: %s", ", ".join(left))
            await admin.transactions.fence(*left, timeout_ms=_TIMEOUT_MS)
        return left
    except (KafkaError, ClientError, PartialFailureError) as error:
        log.warning("transactions of instances that are gone can't be ended, but will time out: %s", error)
        return []


async def _processes(admin: Admin, application_id: str) -> set[str] | None:
    """The processes that the group has; None if it doesn't say, as classic groups while they rebalance."""
    for _ in range(_DESCRIBED_AT_MOST):
        group = (await admin.groups.describe(application_id, timeout_ms=_TIMEOUT_MS))[application_id]
        if all(member.streams is not None for member in group.members):
            return {member.streams.process_id for member in group.members if member.streams is not None}
        await asyncio.sleep(_DESCRIBE_AGAIN_S)
    return None


async def end_own(admin: Admin, application_id: str, own_process: str) -> None:
    """End what this process left open when it ran last: before it joins, so that nobody has to wait for that."""
    try:
        own = f"{application_id}-{own_process}-"
        left = [each for each in await _open_transactions(admin, application_id) if each.startswith(own)]
        if left:
            await admin.transactions.fence(*left, timeout_ms=_TIMEOUT_MS)
    except (KafkaError, ClientError, PartialFailureError) as error:
        log.warning("transactions that this process left open can't be ended, but will time out: %s", error)


async def _open_transactions(admin: Admin, application_id: str) -> list[str]:
    pattern = re.escape(application_id) + "-.*"
    try:
        listed = await admin.transactions.list(states=["Ongoing"], pattern=pattern, timeout_ms=_TIMEOUT_MS)
    except UnsupportedError:
        listed = await admin.transactions.list(states=["Ongoing"], timeout_ms=_TIMEOUT_MS)
    return [each.transactional_id for each in listed]
