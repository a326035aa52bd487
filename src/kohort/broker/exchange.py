"""A request and its response, where they can't be had in one go: handled, encoded in slices, or answered later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import GeneratorType
from typing import Any, Final, TypeAlias

from kohort.broker.reply import BadRequestError, Reply
from kohort.broker.route import Route, Send
from kohort.broker.turns import Slices, Turns, clock

log = logging.getLogger("kohort.broker.dispatch")

MANY_SLICES: Final = 1000
"""A request that was handled in more slices has so large a response that it is encoded in slices, too."""

Done: TypeAlias = Callable[[BadRequestError | None], None]
"""Called when a request is done, with the reason if the connection must be closed."""

Observe: TypeAlias = Callable[[int, float, int, int], None]
"""Counts a request: its API key, seconds, and the bytes of request and response."""


Charge: TypeAlias = Callable[[Any, float], Any]
"""Counts a response, and the seconds of work for it, against the client's quotas; returns the response to send."""


class Exchange:
    """A request that is being answered.

    Args:
        began: when the request came, by `clock`.
        size: its bytes.
        send: takes the response.
        done: called after `send`, or with an error; not if `begin` does all of it.
    """

    __slots__ = (
        "_began",
        "_charge",
        "_correlation_id",
        "_done",
        "_encoding",
        "_error",
        "_in_begin",
        "_observe",
        "_route",
        "_send",
        "_since",
        "_size",
        "_slices",
        "_turns",
        "_worked",
        "_yields",
        "finished",
    )

    def __init__(
        self,
        route: Route,
        correlation_id: int,
        began: float,
        size: int,
        *,
        send: Send,
        done: Done,
        observe: Observe,
        turns: Turns,
        charge: Charge,
    ) -> None:
        self._route = route
        self._correlation_id = correlation_id
        self._began = began
        self._size = size
        self._send = send
        self._done = done
        self._observe = observe
        self._turns = turns
        self._charge = charge
        self._worked = clock() - began  # in seconds, without waiting
        self._since = 0.0  # when the work in progress began; 0 if there is none
        self._slices: Slices[Any] | None = None
        self._yields = 0
        self._encoding = False
        self._in_begin = False
        self._error: BadRequestError | None = None
        self.finished = False

    def begin(self, slices: Slices[Any]) -> bool:
        """Handles the request in slices, the first of them now.

        Args:
            slices: return the response, a reply or None.

        Returns:
            Whether the request is done.

        Raises:
            BadRequestError: the connection must be closed.
        """
        self._in_begin = True
        self._slices = slices
        if not self._work(clock() + self._turns.left):
            self._turns.add(self._work)
        self._in_begin = False
        if self._error is not None:
            raise self._error
        return self.finished

    def begin_later(self, slices: Slices[Any]) -> None:
        """Handles the request in slices, the first of them in a turn to come."""
        self._slices = slices
        self._turns.add(self._work)

    def answer_later(self, reply: Reply[Any]) -> None:
        """Sends the response once the reply has it."""
        reply.then(self._replied)

    def _work(self, until: float) -> bool:
        """Goes on until a time; returns whether nothing is left to do."""
        self._since = clock()
        try:
            return self._work_on(until)
        finally:
            self._worked += clock() - self._since
            self._since = 0.0

    def _work_on(self, until: float) -> bool:
        try:
            while self._slices is not None:
                try:
                    while True:
                        awaited = next(self._slices)
                        if awaited is not None:
                            awaited.then(self._resume)
                            return True
                        self._yields += 1
                        if clock() >= until:
                            return False
                except StopIteration as stop:
                    self._returned(stop.value)
                except BadRequestError:
                    raise
                except Exception as error:
                    self._slices = None
                    self._respond(self._route.failed(error))
        except BadRequestError as error:
            self._finish(error)
        return True

    def _resume(self, _: object) -> None:
        """Goes on after what was waited for: in a turn to come, as this is called within another's work."""
        self._turns.add(self._work)

    def _returned(self, value: Any) -> None:
        """Goes on with what the slices have returned: the size of a response that was sent, or a response."""
        self._slices = None
        if self._encoding:
            self._sent(value)
        elif isinstance(value, Reply) and not value.done:
            value.then(self._replied)
        else:
            self._respond(value.value if isinstance(value, Reply) else value)

    def _replied(self, response: Any) -> None:
        """Called within the work of another request, which must not fail because of this one."""
        try:
            self._respond(response)
        except BadRequestError as error:
            self._finish(error)
        except Exception as error:
            log.exception("%s v%d could not be answered", self._route.api.name, self._route.version)
            self._finish(BadRequestError(f"{self._route.api.name} failed: {error}"))
        if self._slices is not None:
            self._turns.begin(self._work)

    def _respond(self, response: Any) -> None:
        """Sends a response, if there is one, or goes on with slices that return it."""
        if isinstance(response, BadRequestError):
            raise response
        if isinstance(response, GeneratorType):
            self._slices = response  # a reply may leave the work to whoever is answered
            return
        response = self._charge(response, self._worked + (clock() - self._since if self._since else 0.0))
        if response is None:
            self._sent(0)
        elif self._yields >= MANY_SLICES:
            self._encoding = True
            self._slices = self._route.respond_in_slices(self._correlation_id, response, self._send)
        else:
            self._sent(self._route.respond(self._correlation_id, response, self._send))

    def _sent(self, size: int) -> None:
        self._observe(self._route.api.key, clock() - self._began, self._size, size)
        self._finish(None)

    def _finish(self, error: BadRequestError | None) -> None:
        self.finished = True
        self._slices = None
        self._error = error
        if not self._in_begin:
            self._done(error)
