"""Retries: asks one broker after the other, until one answers or the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kohort.client.backoff import Backoff
from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.connections import Connections
from kohort.client.errors import ConnectionLostError, NoBrokerError, RequestTimeoutError
from kohort.client.time_limit import time_limit

__all__ = ["ask_until", "retry_backoff"]

T = TypeVar("T")


def retry_backoff(config: ClientConfig) -> Backoff:
    """Returns a backoff from `retry_backoff_ms` to `retry_backoff_max_ms`."""
    return Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)


async def ask_until(
    connections: Connections,
    config: ClientConfig,
    what: str,
    timeout_ms: float,
    ask: Callable[[Connection], Awaitable[T]],
) -> T:
    """Asks a broker, and another one when the connection breaks, until one answers.

    Args:
        what: names the request, for errors.
        timeout_ms: for all attempts.

    Raises:
        NoBrokerError: none answered in time; says how the last one failed.
        AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
    """
    backoff = retry_backoff(config)
    failure: Exception | None = None
    try:
        async with time_limit(timeout_ms / 1000):
            while True:
                try:
                    return await ask(await connections.any())
                except (ConnectionLostError, RequestTimeoutError) as error:
                    failure = error
                await asyncio.sleep(backoff.next() / 1000)
    except TimeoutError:
        detail = f": {failure}" if failure else ""
        raise NoBrokerError(f"{what}: no broker answered within {timeout_ms:g} ms{detail}") from failure
