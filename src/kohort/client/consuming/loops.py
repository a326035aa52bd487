"""The loops in which users read: who has one, and how it survives an exception."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, Self, TypeVar

__all__ = ["Claim", "Loop"]

T = TypeVar("T")


class Claim:
    """Who reads.

    Attributes:
        task: the task that began.
        loop: None for a poll. It's gone when the user has left it.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self.loop: weakref.ref[Loop[Any]] | None = None

    def holds(self) -> bool:
        """Whether there's still somebody who reads."""
        return not self.task.done() and (self.loop is None or self.loop() is not None)


class Loop(Generic[T]):
    """What a user iterates over: an async generator, or the next one after an exception has ended it.

    So who gives up waiting for a record, as by `asyncio.timeout`, or seeks past a bad one, may go on with the same
    loop. `async for` calls the generator's own `__anext__`: it lies in a slot, where no Python code stands between.
    """

    __slots__ = ("__anext__", "__weakref__", "_begin", "_generator")

    __anext__: Callable[[], Awaitable[T]]

    def __init__(self, begin: Callable[[Claim], AsyncGenerator[T, None]]) -> None:
        claim = Claim()
        claim.loop = weakref.ref(self)
        self._begin: Callable[[], AsyncGenerator[T, None]] = lambda: begin(claim)
        self.renew()

    def __aiter__(self) -> Self:
        return self

    def renew(self) -> None:
        """Have the next step begin anew."""
        self._generator = self._begin()
        self.__anext__ = self._generator.__anext__

    async def aclose(self) -> None:
        """Leave the loop."""
        await self._generator.aclose()
