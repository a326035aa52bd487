"""The process that places tasks.

A solver holds the GIL while it works, so in a thread it would block all heartbeats. A process can use another core, can
be killed, and returns its memory when it ends.

    python -P -m kohort.broker.streams.solver

is this process: until its input ends, it reads pairs of an assignor's name and a group from standard input, and writes
placements, as pickles with a size prefix.
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

from kohort.coordinator.placement import ASSIGNORS, place
from kohort.coordinator.placement.model import Group, Member, Placement, SubtopologyTasks

_ANY: Final = Group((SubtopologyTasks("0", 3, 1),), (Member("a"), Member("b")), standbys=1)
# Without -P, a file in the broker's working directory could shadow a module.
_COMMAND: Final = (sys.executable, "-P", "-m", "kohort.broker.streams.solver")
_SIZE: Final = struct.Struct(">Q")
_NICENESS: Final = 5
"""On a single core, heartbeats come first."""

DEADLINE_SECONDS: Final = 30.0
"""The most time for a placement. The largest groups need a few seconds, and other groups wait for them."""


class SolverError(Exception):
    """There is no placement: the assignor failed, or the process has ended."""


class Solver:
    """A handle on the process, which is started when it is first needed.

    `start`, `solve` and `stop_process` block, and must be called in one thread; `stop` may be called in another.
    """

    def __init__(self, command: Sequence[str] = _COMMAND) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Starts the process, which loads its modules.

        Raises:
            SolverError: it failed.
        """
        for assignor in ASSIGNORS:
            self.solve(assignor, _ANY)

    def solve(self, assignor: str, group: Group) -> Placement:
        """Places a group's tasks.

        Raises:
            SolverError: it failed.
        """
        began = time.monotonic()
        try:
            answer = _answer(self._started(), (assignor, group))
        except OSError as error:
            answer, reason = None, f"the process can't be started, or has ended: {error}"
        else:
            reason = "the process has ended"
        if answer is None:
            self.stop_process()  # it may not have ended yet; the next job starts another
            late = time.monotonic() - began >= DEADLINE_SECONDS
            raise SolverError(f"it took longer than {DEADLINE_SECONDS:g} s" if late else reason)
        if isinstance(answer, str):
            raise SolverError(answer)
        placement: Placement = answer
        return placement

    def stop_process(self) -> None:
        """Ends the process; the next job starts another."""
        with self._lock:
            self._end()

    def stop(self) -> None:
        """Ends the process for good, even while it works."""
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
                # In a separate session, as Ctrl-C in the terminal is for the broker. It gets the broker's sys.path,
                # which an application may have changed.
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
                with contextlib.suppress(OSError):  # it hadn't read everything
                    pipe.close()


def _answer(process: subprocess.Popen[bytes], asked: object) -> Any:
    """Returns the process's answer; None if it ended, as when it took too long."""
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
    """Reads the next message; None at the end."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = pipe.read(size)
    return pickle.loads(data) if len(data) == size else None


def main() -> None:
    """Places tasks until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    gc.disable()  # while the broker waits; it runs between two groups
    # What a library prints must not get into the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError), answers:  # the broker was killed
        while (asked := _read(sys.stdin.buffer)) is not None:
            assignor, group = asked
            try:
                answer: Placement | str = place(assignor, group)
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            _write(answers, answer)
            del asked, group, answer
            gc.collect()


if __name__ == "__main__":
    main()
