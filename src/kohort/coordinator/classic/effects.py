"""The records and answers of the operation under way, gathered where they arise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kohort.coordinator.step import Answer, Record, Reply, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode


class Effects:
    """Gathers records and answers into the step of the request, or of the timer, that causes them.

    Attributes:
        now: the time of the operation under way, in ms since 1970.
        pending: steps of timers, for the runtime to take.
    """

    def __init__(self, wheel: TimingWheel, pending: list[Step]) -> None:
        self.now = wheel.now
        self.pending = pending
        self._wheel = wheel
        self._step: Step | None = None

    @contextmanager
    def of_request(self, now: int) -> Iterator[Step]:
        self.now = now
        self._step = step = Step()
        try:
            yield step
        finally:
            self._step = None

    @contextmanager
    def of_timer(self) -> Iterator[None]:
        """Adds to the step of the request under way; without one it makes a step of its own, in `pending`."""
        if self._step is not None:
            yield
            return
        with self.of_request(self._wheel.now) as step:
            yield
        if step.records or step.answers:
            self.pending.append(step)

    def answer(self, reply: Reply, response: object) -> None:
        """Answers a request, this one or an earlier one."""
        assert self._step is not None
        self._step.answers.append(Answer(reply, response))

    def record(self, record: Record, failed: Callable[[ErrorCode], Step] | None = None) -> None:
        """Adds a record; `failed` gives the step to take instead if the append fails. Without it the answers stand."""
        assert self._step is not None
        self._step.records.append(record)
        self._step.failed = failed
