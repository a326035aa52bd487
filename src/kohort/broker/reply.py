"""A response that may come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class BadRequestError(Exception):
    """The request can't be answered: the connection must be closed."""


class Reply(Generic[T]):
    """Takes a response once, now or later, and passes it to a callback.

    A future without an event loop: the callback runs within the call that sets the response, so a heartbeat doesn't
    cost a turn of the loop.
    """

    __slots__ = ("_then", "done", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: T | None = None
        self._then: Callable[[T], None] | None = None

    def __call__(self, value: T) -> None:
        """Sets the response.

        Raises:
            RuntimeError: it was set before.
        """
        if self.done:
            raise RuntimeError("a request is answered twice")
        self.done = True
        self.value = value
        if self._then is not None:
            self._then(value)

    def then(self, receive: Callable[[T], None]) -> None:
        """Calls `receive` with the response, at once if there is one."""
        if self.done:
            receive(self.value)  # type: ignore[arg-type]
        else:
            self._then = receive


def when_replied(done: T | Reply[T], receive: Callable[[T], None]) -> None:
    """Calls `receive` with a response, now or when its reply is done."""
    if isinstance(done, Reply):
        done.then(receive)
    else:
        receive(done)


def map_reply(done: T | Reply[T], change: Callable[[T], R]) -> R | Reply[R]:
    """Applies `change` to a response, now or when its reply is done."""
    if not isinstance(done, Reply):
        return change(done)
    reply: Reply[R] = Reply()
    done.then(lambda response: reply(change(response)))
    return reply
