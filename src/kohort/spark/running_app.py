"""An application's instance that runs in the background of a program or a notebook: `StreamsApp.start`."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # what it does at the end of a process has to be known: see _at_exit
import contextlib
import functools
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from kohort.notebook_html import Html
from kohort.plurals import several
from kohort.spark.app_html import queues_page, running_page
from kohort.spark.errors import ProgramError
from kohort.spark.monitoring.events import Listener, Listeners
from kohort.spark.monitoring.overview import Overview

if TYPE_CHECKING:
    from kohort.spark.program.topology_outline import SubtopologyOutline
    from kohort.spark.queues.counts import QueueCounts

__all__ = ["RunningApp"]

log = logging.getLogger(__name__)

_AT_EXIT_S: Final = 60.0
"""At the end of the process, an instance has so long to end."""
_LAST_LOOK_S: Final = 5.0
"""Who waits for the end waits so much longer, at most, for views that show it."""
_TRIES: Final = 20


class RunningApp:
    """An instance of an application that runs in the background, from `StreamsApp.start`.

        running = app.start(spark)
        running.live()  # in a notebook: its state below the cell, as long as it runs
        running.stop()

    A context manager, which stops it. When the process ends, as a notebook's kernel does, it is stopped, too.

    Args:
        application_id: of the application.
        ask: has the instance end, without waiting for that.
        queues: whether it works on queues.

    Attributes:
        application_id: of the application.
    """

    def __init__(self, application_id: str, ask: Callable[[], object], *, queues: bool = False) -> None:
        self.application_id = application_id
        self._ask, self._queues = ask, queues
        self._overview = Overview()
        self._lines = Listeners()
        self._outlines: Sequence[SubtopologyOutline] = ()
        self._counts: Sequence[QueueCounts] = ()
        self._shown_in_a_line = False
        self._asked = False
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._reading = threading.Lock()
        self._views: list[threading.Thread] = []

    # Life ------------------------------------------------------------------------------------------------------------

    def begin(self, run: Callable[[], object]) -> None:
        """Has `run` run in a thread of its own; once.

        Raises:
            ProgramError: an instance of the application runs in this process already.
        """
        with _lock:
            if any(each.application_id == self.application_id for each in _running):
                raise ProgramError(
                    f"{self.application_id} runs in this process already: stop it first, with stop() of what start() "
                    f"gave then"
                )
            _stop_at_exit()
            _running.append(self)
        _thread(f"kohort-{self.application_id}", self._run, run)

    @property
    def state(self) -> str:
        """In a word: starting, restoring, running, waiting, failing, stopping, stopped, or failed."""
        if self._over.is_set():
            return "stopped" if self._error is None else "failed"
        if self._asked:
            return "stopping"
        return self._overview.state() if not self._counts else "running"

    def stop(self, timeout: float | None = None) -> None:
        """Ends it as SIGTERM does, and waits until it has: its epoch is finished, its tasks are handed over.

        Args:
            timeout: seconds to wait; it ends all the same, later.

        Raises:
            TimeoutError: it hasn't ended yet.
            ApplicationError, ProgramError, …: what it has failed with, as from `StreamsApp.run`.
        """
        self.ask()
        if not self.wait(timeout):
            raise TimeoutError(f"{self.application_id} hasn't ended after {timeout:g} s: it goes on ending")

    def ask(self) -> None:
        """Has it end, without waiting for that."""
        self._asked = True
        self._ask()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it ends, by `stop` or by itself, and views have shown that; says whether it has ended.

        Ctrl+C ends the waiting alone.

        Args:
            timeout: seconds to wait.

        Raises:
            ApplicationError, ProgramError, …: what it has failed with, as from `StreamsApp.run`.
        """
        began = time.monotonic()
        if not self._over.wait(timeout):
            return False
        self._await_views(began + timeout if timeout is not None else math.inf)
        if self._error is not None:
            raise self._error
        return True

    def _await_views(self, deadline: float) -> None:
        """A notebook's cell that has ended can be past being changed: nbclient passes over what comes then."""
        views, self._views = self._views, []
        deadline = min(deadline, time.monotonic() + _LAST_LOOK_S)
        for each in views:
            each.join(max(deadline - time.monotonic(), 0))

    def await_end(self, timeout: float) -> bool:
        """Waits as `wait` does, and raises nothing."""
        return self._over.wait(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"{self.application_id}, in the background: {failure}")

    def _run(self, run: Callable[[], object]) -> None:
        try:
            run()
        except BaseException as error:
            self._error = error
            log.error("%s has ended, and wait() raises why: %s", self.application_id, error)
        finally:
            self._overview.measures(dict)
            with _lock:
                _running.remove(self)
            self._over.set()

    # What is seen of it ----------------------------------------------------------------------------------------------

    def live(self, seconds: float = 1.0) -> None:
        """Shows what it does, as long as it runs: in a notebook below the cell, else in a line on standard error.

        Returns at once. Called again, as in another cell, it is shown there, too.

        Args:
            seconds: between two looks, in a notebook.
        """
        if _in_a_notebook():
            shown = self._bundle()
            handle = import_module("IPython.display").display(shown, raw=True, display_id=True)
            name = f"kohort-{self.application_id}-live"
            self._views.append(_thread(name, self._refresh, handle, shown, seconds))
        else:
            self._show_a_line()

    def _refresh(self, handle: Any, shown: dict[str, str], seconds: float) -> None:
        over = False
        while not over:
            over = self._over.wait(seconds)
            if (now := self._bundle()) != shown:
                shown = now
                handle.update(now, raw=True)

    def _show_a_line(self) -> None:
        with self._reading:
            if self._shown_in_a_line:
                return
            self._shown_in_a_line, counts = True, self._counts
        if self._queues:
            if counts:
                self._show_counts(counts)
            return
        from kohort.spark.monitoring.progress_line import ProgressLine

        line = ProgressLine(self.application_id, self._overview)
        self._lines.add(line)  # which is told after the overview
        line.start()
        if (step := self._overview.step) is not None:
            line.starting(step)
        _thread(f"kohort-{self.application_id}-live", self._close_at_the_end, line.close)

    def _show_counts(self, counts: Sequence[QueueCounts]) -> None:
        from kohort.spark.queues.progress import QueueProgress

        line = QueueProgress(self.application_id, counts)
        _thread(f"kohort-{self.application_id}-live", self._close_at_the_end, line.close)

    def _close_at_the_end(self, close: Callable[[], object]) -> None:
        self._over.wait()
        close()

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return self._read(self._page)

    def __repr__(self) -> str:
        return f"RunningApp({self.application_id!r}, {self._read(self._sentence)})"

    def _page(self) -> Html:
        failure = None if self._error is None else str(self._error) or type(self._error).__name__
        if self._queues:
            return queues_page(self.application_id, self.state, self._overview, self._counts, failure)
        if failure is None and self._overview.failure is not None:
            failure = self._overview.failure[1]
        return running_page(self.application_id, self.state, self._overview, self._outlines, failure)

    def _sentence(self) -> str:
        if self._error is not None:
            return f"failed: {self._error}"
        state, now = self.state, self._overview.now
        why = {"waiting": self._overview.reason, "starting": self._overview.step}.get(state)
        if why is not None:
            state = f"{state} ({why})"
        if self._queues:
            return "; ".join([state, *(f"{each.topic}: {each.line()}" for each in self._counts)])
        tasks = several(0 if now is None else len(now.active), "task")
        return f"{state}: {tasks}, lag {self._overview.lag:,}, {several(self._overview.records, 'record')}"

    def _read(self, read: Callable[[], str]) -> str:
        """What is read while the instance goes on in its thread: again, if what is gone through changed meanwhile."""
        with self._reading:
            for _ in range(_TRIES):
                with contextlib.suppress(RuntimeError, LookupError):
                    return read()
            return read()

    # What happens to it ----------------------------------------------------------------------------------------------

    @property
    def overview(self) -> Overview:
        """What the instance has to tell first what happens."""
        return self._overview

    @property
    def listener(self) -> Listener:
        """What it has to tell after that."""
        return self._lines

    def compiled(self, outlines: Sequence[SubtopologyOutline]) -> None:
        """Takes what the program is made of."""
        self._outlines = outlines

    def counted(self, counts: Sequence[QueueCounts]) -> None:
        """Takes what is counted of queues."""
        with self._reading:
            self._counts, shown = counts, self._shown_in_a_line
        if shown:
            self._show_counts(counts)


_lock = threading.RLock()
_running: list[RunningApp] = []


def _thread(name: str, target: Callable[..., object], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    thread.start()
    return thread


def _in_a_notebook() -> bool:
    """Whether there is a kernel that shows HTML, and changes it later. IPython isn't loaded for that."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@functools.cache
def _stop_at_exit() -> None:
    """Has what runs stopped when the process ends, once.

    Before what `atexit` calls, concurrent.futures is told: it lets nothing begin from then on, which the instance needs
    to end in good order. So this is registered where that is; what was registered later is called earlier.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_stop_all)


def _stop_all() -> None:
    with _lock:
        running = tuple(_running)
    for each in running:
        each.ask()
    for each in running:
        each.await_end(_AT_EXIT_S)
