"""The memory of requests that are being received or wait for their turn: `queued.max.request.bytes`.

As in Kafka, a connection that is over the bound isn't read until others have got their answers. Unlike there, who
leaves a request unfinished meanwhile loses the connection: else a few of them would keep everybody out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final, Protocol

log = logging.getLogger("kohort.broker.connection")

STALLED_SECONDS: Final = 5.0
"""How long a client may leave a request unfinished while others wait for memory."""

CHECK_SECONDS: Final = 1.0

FREE_OF_CHARGE: Final = 64 * 1024
"""Bytes of a connection that don't count: most requests are smaller, and needn't be counted."""


class Receiver(Protocol):
    """A connection, as it is seen here."""

    peer: str
    last_active: float
    busy: bool

    def go_on_reading(self) -> None:
        """Reads again, after there was no room."""
        ...

    def abort(self) -> None: ...


class RequestMemory:
    """Counts the bytes of all connections' unanswered requests.

    Args:
        limit: bytes; -1 for none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[Receiver, int] = {}
        self._waiting: dict[Receiver, None] = {}
        self._check: asyncio.TimerHandle | None = None
        self.used = 0

    def hold(self, receiver: Receiver, size: int) -> bool:
        """Sets the bytes that a connection holds; returns whether it may read more, else it is told later."""
        size = size if size > FREE_OF_CHARGE else 0
        before = self._held.get(receiver, 0)
        if size == before:
            return receiver not in self._waiting
        self.used += size - before
        if size:
            self._held[receiver] = size
        else:
            self._held.pop(receiver, None)
            self._waiting.pop(receiver, None)
        if size < before:
            self._let_in()
        if 0 <= self._limit < self.used and size > before:
            self._waiting[receiver] = None
            self._let_in()
            self._schedule()
        return receiver not in self._waiting

    def close(self) -> None:
        if self._check is not None:
            self._check.cancel()

    def _let_in(self) -> None:
        """Lets the oldest go on: all while there is room, and one if nobody else does, or none would ever end."""
        while self._waiting and (self.used <= self._limit or len(self._waiting) == len(self._held)):
            receiver = next(iter(self._waiting))
            del self._waiting[receiver]
            receiver.go_on_reading()

    def _schedule(self) -> None:
        if self._waiting and self._check is None:
            self._check = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._close_stalled)

    def _close_stalled(self) -> None:
        self._check = None
        before = time.monotonic() - STALLED_SECONDS
        for receiver in list(self._held):
            if receiver not in self._waiting and not receiver.busy and receiver.last_active < before:
                log.warning(
                    "connection closed peer=%s reason=a request is unfinished for %d s, and queued.max.request.bytes "
                    "(%d) is reached", receiver.peer, STALLED_SECONDS, self._limit,
                )  # fmt: skip
                receiver.abort()
        self._schedule()
