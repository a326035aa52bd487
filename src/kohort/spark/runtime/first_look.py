"""Looks, before anything that takes long, whether there is a cluster, and whether it has a program's topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.no_broker import saying_once
from kohort.spark.program.topics_there import NamedTopics, check_topics
from kohort.spark.runtime.foreground import in_foreground, signals
from kohort.spark.runtime.shutdown import Shutdown
from kohort.spark.runtime.unless_stopped import unless_stopped


def topics_are_there(
    application_id: str,
    named: NamedTopics,
    client: ClientConfig,
    stopping: Shutdown,
    waiting: Callable[[str | None], object],
) -> bool:
    """Waits for a broker, and asks it for the topics. As while an application runs, signals and `stopping` end that.

    Args:
        waiting: told why it waits, and with None that it goes on.

    Returns:
        Whether they are there; False if it was stopped first.

    Raises:
        ProgramError: topics are missing.
        KafkaError, ClientError: the cluster can't be asked, or no broker was found within `bootstrap_timeout_ms`, if
            that is set.
    """
    if not named.read and not named.patterns:
        return True  # that is for the compiler to say
    found = waited = False

    def says(reason: str) -> None:
        nonlocal waited
        waited = True
        waiting(reason)

    async def ask() -> None:
        async with Admin(saying_once(client, says)) as admin:
            if waited:
                waiting(None)
            check_topics(application_id, named, await admin.topics.list(internal=True), client)

    async def look() -> None:
        nonlocal found
        stop = asyncio.Event()
        with signals(stopping.ask), stopping.ends(stop.set):
            found = await unless_stopped(stop, ask())

    in_foreground(look, stopping)
    return found and not stopping.asked
