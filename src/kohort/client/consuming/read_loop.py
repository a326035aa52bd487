"""The loops in which users read: which task reads, and how its loop survives an exception."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

from kohort.client.errors import ClientError

T = TypeVar("T")


class Reader:
    """The task that reads.

    Attributes:
        loop: its loop, None for a poll; the reference is dead when the user has left the loop.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self.loop: weakref.ref[ReadLoop[Any]] | None = None

    def active(self) -> bool:
        return not self.task.done() and (self.loop is None or self.loop() is not None)


class OneReader:
    """Lets one task at a time read from a consumer."""

    def __init__(self) -> None:
        self._reader: Reader | None = None

    def active(self) -> bool:
        """Whether a task reads."""
        return self._reader is not None and self._reader.active()

    @contextmanager
    def reading(self, reader: Reader) -> Iterator[None]:
        """Refuses other readers meanwhile. A loop that an exception ends begins again with the next record.

        Raises:
            ClientError: another task is reading.
        """
        other = self._reader
        if other is not None and other.task is not reader.task and other.active():
            raise ClientError(
                f"another task ({other.task.get_name()}) reads from this consumer; "
                "let one task read and hand records on, or give each task a consumer of its own"
            )
        self._reader = reader
        try:
            yield
        except (Exception, asyncio.CancelledError):
            if reader.loop is not None and (loop := reader.loop()) is not None:
                loop.renew()
            raise
        finally:
            if self._reader is reader:
                self._reader = None


class ReadLoop(Generic[T]):
    """What a user iterates over: an async generator, or the next one after an exception has ended it.

    So a user who stops waiting for a record, as by `asyncio.timeout`, or seeks past a bad one, may go on with the same
    loop. `async for` calls the generator's own `__anext__`: it lies in a slot, with no Python code in between.
    """

    __slots__ = ("__anext__", "__weakref__", "_begin", "_generator")

    __anext__: Callable[[], Awaitable[T]]

    def __init__(self, begin: Callable[[Reader], AsyncGenerator[T, None]]) -> None:
        reader = Reader()
        reader.loop = weakref.ref(self)
        self._begin: Callable[[], AsyncGenerator[T, None]] = lambda: begin(reader)
        self.renew()

    def __aiter__(self) -> Self:
        return self

    def renew(self) -> None:
        """Lets the next step begin with another generator."""
        self._generator = self._begin()
        self.__anext__ = self._generator.__anext__

    async def aclose(self) -> None:
        await self._generator.aclose()
