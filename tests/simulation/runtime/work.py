"""Something that an instance has under way: steps that take time, with a place to crash before each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.client.errors import ClientError
from kohort.protocol.errors import KafkaError
from kohort.spark.runtime.errors import RestartFromCommittedError
from kohort.spark.state import StateError
from tests.simulation.runtime.clock import Answer, Cancelled, JobError, Steps

if TYPE_CHECKING:
    from tests.simulation.runtime.instance import Instance

FORESEEN = (Cancelled, JobError, KafkaError, ClientError, StateError, RestartFromCommittedError)


class Work:
    """Goes through steps.

    Args:
        instance: whose it is: nothing goes on while its process is frozen, or when it is dead.
        steps: what is done.
        over: called when it is over, a moment later.
        risk: how much more likely than usual the process crashes at one of the steps.

    Attributes:
        value, error: what came of it; a `Cancelled` if it was cancelled.
        over: whether it is.
    """

    def __init__(self, instance: Instance, steps: Steps, over: Callable[[Work], object], risk: int) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self.over = False
        self._instance, self._steps, self._then = instance, steps, over
        self._risk, self._waits = risk, 0
        self._cancelled = False
        self._resume_after(0, None)

    @property
    def cancelled(self) -> bool:
        """Whether it ended since it was cancelled."""
        return isinstance(self.error, Cancelled)

    def cancel(self) -> None:
        """Have it end where it is."""
        if not self.over:
            self._cancelled = True
            self._resume_after(0, None)

    def _resume_after(self, ms: int, answer: Answer | None) -> None:
        self._waits += 1
        waits = self._waits

        def due() -> None:
            self._instance.when_awake(lambda: self._resume(waits, answer))

        if answer is not None:
            answer.then(due)
        else:
            self._instance.cluster.clock.after(ms, due)

    def _resume(self, waits: int, answer: Answer | None) -> None:
        if waits != self._waits or self.over or self._instance.crashes(self._risk):
            return
        try:
            if self._cancelled:
                self._cancelled = False
                waits_for = self._steps.throw(Cancelled())
            elif answer is not None and answer.error is not None:
                waits_for = self._steps.throw(answer.error)
            else:
                waits_for = self._steps.send(None if answer is None else answer.value)
        except StopIteration as end:
            self.value = end.value
        except FORESEEN as error:
            self.error = error
        else:
            if isinstance(waits_for, Answer):
                self._resume_after(0, waits_for)
            else:
                self._resume_after(waits_for, None)
            return
        self.over = True
        self._instance.soon(lambda: self._then(self))
