"""A process of its own that places tasks.

A solver doesn't let go of the interpreter while it works, so in a thread it would stop all heartbeats for as long as
it takes. A process doesn't; it has another core where there is one, it can be killed, and what it needs of memory is
gone with it.

    python -P -m kohort.broker.streams.solver

is such a process: it reads assignors' names with their groups from its standard input, and writes placements, both as
pickles with their size in front, until its input ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, Final

from kohort.coordinator.placement import ASSIGNORS
from kohort.coordinator.placement.model import Group, Member, Placement, SubtopologyTasks

__all__ = ["Solver", "SolverError"]

_ANY: Final = Group((SubtopologyTasks("0", 3, 1),), (Member("a"), Member("b")), standbys=1)
# Without -P, whatever lies in the directory that the broker was started in could take a module's place.
_COMMAND: Final = (sys.executable, "-P", "-m", "kohort.broker.streams.solver")
_SIZE: Final = struct.Struct(">Q")
_NICENESS: Final = 5
"""Where there is one core for all, heartbeats come first."""

DEADLINE_SECONDS: Final = 30.0
"""How long a placement may take. The largest groups need a few seconds, and all others wait meanwhile."""


class SolverError(Exception):
    """No placement came of it: the assignor failed, or the process is gone."""


class Solver:
    """The process, seen from outside. It is started when it is first needed.

    `start`, `solve` and `rest` block, and belong in one thread; `stop` may be called from another.

    Args:
        command: what to start.
    """

    def __init__(self, command: Sequence[str] = _COMMAND) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def running(self) -> bool:
        """Whether there is a process now."""
        return self._process is not None

    def start(self) -> None:
        """Start the process, and have it load what it needs.

        Raises:
            SolverError: it failed.
        """
        for assignor in ASSIGNORS:
            self.solve(assignor, _ANY)

    def solve(self, assignor: str, group: Group) -> Placement:
        """Have a group's tasks placed.

        Raises:
            SolverError: it failed.
        """
        began = time.monotonic()
        try:
            answer = _answer(self._started(), (assignor, group))
        except OSError as error:
            answer, reason = None, f"the process can't be started, or is gone: {error}"
        else:
            reason = "the process is gone"
        if answer is None:
            self.rest()  # it may be dying, and not dead yet; the next is another
            late = time.monotonic() - began >= DEADLINE_SECONDS
            raise SolverError(f"it took longer than {DEADLINE_SECONDS:g} s" if late else reason)
        if isinstance(answer, str):
            raise SolverError(answer)
        placement: Placement = answer
        return placement

    def rest(self) -> None:
        """End the process until it is needed again."""
        with self._lock:
            self._end()

    def stop(self) -> None:
        """End the process for good, whatever it is doing."""
        with self._lock:
            self._stopped = True
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise SolverError("the broker is stopping")
            if self._process is not None and self._process.poll() is not None:
                self._end()
            if self._process is None:
                # In a session of its own: a Ctrl-C in the terminal is the broker's business. It finds modules where the
                # broker does, which may be in an application that has put this package on its path by itself.
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
                )
            return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):  # of what it didn't read any more
                    pipe.close()


def _answer(process: subprocess.Popen[bytes], asked: object) -> Any:
    """What the process answers; None if it ends before, as it does when it takes too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Timer(DEADLINE_SECONDS, process.kill)
    late.start()
    try:
        _write(process.stdin, asked)
        return _read(process.stdout)
    finally:
        late.cancel()
        late.join()


def _write(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    pipe.write(_SIZE.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    """The next message; None at the end."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = pipe.read(size)
    return pickle.loads(data) if len(data) == size else None


def main() -> None:
    """Place what is asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    gc.disable()  # while somebody waits; there is time for it between two groups
    # What a library prints mustn't end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError), answers:  # the broker was killed
        while (asked := _read(sys.stdin.buffer)) is not None:
            assignor, group = asked
            try:
                answer: Placement | str = ASSIGNORS[assignor](group)
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            _write(answers, answer)
            del asked, group, answer
            gc.collect()


if __name__ == "__main__":
    main()
