"""What an interpreter has begun: one thing at a time for each task, and for each chain's epochs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from kohort.streams.tasks import TaskId

Outcome: TypeAlias = "asyncio.Task[Any]"
"""Something that is over: done, failed or cancelled."""


class UnderWay:
    """Asyncio tasks by what they are for; what each comes to is handed on, unless the end has come.

    Args:
        failed: called with what goes wrong when an outcome is handed on.
    """

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._tasks: dict[TaskId | str, asyncio.Task[Any]] = {}
        self._all: set[asyncio.Task[Any]] = set()  # those that were replaced, too
        self._closed = False

    def get(self, key: TaskId | str) -> asyncio.Task[Any] | None:
        """What is under way for a task, or for a subtopology."""
        return self._tasks.get(key)

    def begin(
        self, key: TaskId | str, work: Coroutine[Any, Any, Any], over: Callable[[Outcome], None], name: str
    ) -> None:
        """Begin something, instead of what is under way, which is cancelled; `over` gets the outcome."""
        if self._closed:
            work.close()
            return
        if (before := self._tasks.get(key)) is not None:
            before.cancel()
        task = self._tasks[key] = asyncio.create_task(work, name=f"kohort-{name}-{key}")

        self._all.add(task)

        def done(task: Outcome) -> None:
            self._all.discard(task)
            if self._tasks.get(key) is task:
                del self._tasks[key]
            if self._closed:
                if not task.cancelled():
                    task.exception()
                return
            try:
                over(task)
            except Exception as error:
                self._failed(error)

        task.add_done_callback(done)

    async def close(self) -> None:
        """Cancel all, and wait for that. No outcome is handed on any more."""
        self._closed = True
        for task in list(self._all):
            if not task.cancelling():  # another cancel would interrupt its cleanup
                task.cancel()
        if self._all:
            await asyncio.wait(self._all)
