"""Keeps a running application abreast of the topics that its streams' patterns match."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Final

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.errors import ClientError
from kohort.client.loop_thread import LoopThread
from kohort.client.no_broker import saying_once
from kohort.protocol.errors import KafkaError
from kohort.spark.program.compiled import Program
from kohort.spark.program.source_topics import matched_topics, with_topics
from kohort.spark.runtime.shutdown import Shutdown
from kohort.spark.runtime.unless_stopped import unless_stopped

log = logging.getLogger(__name__)

_LOOK_S: Final = 5.0


def run_with_topics(
    program: Program,
    client: ClientConfig,
    run: Callable[[Program], None],
    stopping: Shutdown,
) -> None:
    """Runs a program with the topics that its patterns match, and again whenever these are others.

    Args:
        run: runs an instance until `stopping` ends it.

    Raises:
        ProgramError: no topic matches a pattern, or one that the program has otherwise.
        KafkaError, ClientError: no broker was found within `bootstrap_timeout_ms`, if that is set.
    """
    if not program.topology.source_patterns:
        run(program)
        return
    looking = LoopThread("kohort-topics")
    try:
        watch = _Watch(program, client, stopping)
        while not stopping.asked:
            found = looking.run(watch.look_unless_stopped())
            if found is None:
                return
            watching = looking.run(_begun(watch.until_others(found)))
            try:
                run(with_topics(program, found))
            finally:
                looking.run(_ended(watching))
            if not watch.changed:
                return
    finally:
        looking.close()


async def _begun(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancels a task, and waits until it has closed what it had."""
    task.cancel()
    await asyncio.wait([task])


class _Watch:
    def __init__(self, program: Program, client: ClientConfig, stopping: Shutdown) -> None:
        self._program, self._client, self._stopping = program, client, stopping
        self.changed = False

    async def look_unless_stopped(self) -> dict[str, tuple[str, ...]] | None:
        """The same as `look`; None if the run is to stop before a broker says."""
        stop = asyncio.Event()
        found: dict[str, tuple[str, ...]] = {}

        async def look() -> None:
            found.update(await self.look())

        with self._stopping.ends(stop.set):
            return found if await unless_stopped(stop, look()) else None

    async def look(self) -> dict[str, tuple[str, ...]]:
        """The topics that patterns match now."""
        self.changed = False
        waiting = functools.partial(log.warning, "%s waits: %s", self._program.application_id)
        async with Admin(saying_once(self._client, waiting)) as admin:
            return await self._matched(admin)

    async def until_others(self, found: dict[str, tuple[str, ...]]) -> None:
        """End the run when the topics aren't these any more."""
        async with Admin(self._client) as admin:
            while True:
                await asyncio.sleep(_LOOK_S)
                try:
                    now = await self._matched(admin)
                except (KafkaError, ClientError) as error:
                    log.debug("topics can't be listed: %s", error)
                    continue
                if now != found:
                    if not self.changed:
                        log.warning("%s: the instance starts again, with its state", _difference(found, now))
                    self.changed = True
                    self._stopping.end()

    async def _matched(self, admin: Admin) -> dict[str, tuple[str, ...]]:
        return matched_topics(self._program, await admin.topics.list())


def _difference(before: dict[str, tuple[str, ...]], now: dict[str, tuple[str, ...]]) -> str:
    """What has come and gone."""
    said = []
    for pattern, topics in now.items():
        if new := sorted(set(topics) - set(before[pattern])):
            said.append(f"the pattern {pattern!r} matches {', '.join(new)}, too")
        if gone := sorted(set(before[pattern]) - set(topics)):
            said.append(f"{', '.join(gone)} of the pattern {pattern!r} is gone")
    return "; ".join(said)
