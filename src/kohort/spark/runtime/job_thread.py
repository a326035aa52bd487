"""A thread that a subtopology's runner has to itself.

Spark's calls block, and py4j ties a thread of Python to one of the JVM: what must be seen by the next call, such as the
job group by which a job is cancelled, needs the same thread each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

log = logging.getLogger(__name__)

_CANCEL_EVERY_S: Final = 0.5

P = ParamSpec("P")
R = TypeVar("R")


class JobThread:
    """Runs functions one after the other, in a thread of its own. Made and called in an event loop.

    The thread is a daemon: a process that must end at once needn't wait for Spark.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._last: asyncio.Future[Any] | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function in the thread. Cancelled, it runs on: see `idle`."""
        future: asyncio.Future[R] = self._loop.create_future()
        future.add_done_callback(_consume_error)

        def work() -> None:
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._tell(future, None, error)
            else:
                self._tell(future, result, None)

        if self._thread.ident is None:
            self._thread.start()
        self._last = future
        self._todo.put(work)
        return await asyncio.shield(future)

    async def idle(self) -> None:
        """Wait until the thread has done all that it was given, also what was cancelled."""
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last])

    async def stopped(self, cancel: Callable[[], None]) -> None:
        """Wait as `idle` does, and end early what runs.

        Args:
            cancel: called in another thread, again and again: a Spark job that is about to begin doesn't hear of it.
        """
        while self.busy:
            try:
                await asyncio.to_thread(cancel)
            except Exception as error:
                log.info("what runs can't be cancelled: %s", error)
            if self._last is not None:
                await asyncio.wait([self._last], timeout=_CANCEL_EVERY_S)

    @property
    def busy(self) -> bool:
        """Whether it has something to do."""
        return self._last is not None and not self._last.done()

    def close(self) -> None:
        """End the thread once it has done what it was given."""
        self._todo.put(None)

    async def closed(self) -> None:
        """Close, and wait for the end of the thread."""
        self.close()
        if self._thread.ident is None:
            return
        await self.idle()
        await self._loop.run_in_executor(None, self._thread.join, 5.0)

    def _tell(self, future: asyncio.Future[R], result: R | None, error: BaseException | None) -> None:
        def tell() -> None:
            if not future.done():
                if error is not None:
                    future.set_exception(error if not isinstance(error, StopIteration) else RuntimeError(repr(error)))
                else:
                    future.set_result(result)  # type: ignore[arg-type]

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(tell)

    def _work(self) -> None:
        while (work := self._todo.get()) is not None:
            work()


def _consume_error(future: asyncio.Future[Any]) -> None:
    """An error that nobody waits for any more is no news."""
    if not future.cancelled():
        future.exception()
