"""Places a group beside the console's work.

What needs no solver takes a moment, in a thread. A solver holds the GIL while it works, so it has a process of its own:

    python -P -m kohort.console.placing

reads a group and changes from standard input, and writes what placing them came to, as pickles. One runs at a time,
and not for longer than `LONGEST_S`; then the group is placed by `sticky`.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
from collections.abc import Sequence
from typing import Final

from kohort.client.time_limit import time_limit
from kohort.coordinator.placement import ASSIGNORS, Group, Placement, place_without_solver
from kohort.coordinator.placement.outcome import Comparison, compare
from kohort.coordinator.placement.what_if import Change
from kohort.extras import MissingExtraError

LONGEST_S: Final = 10.0
"""For a solver, whose largest groups take a few seconds."""

# Without -P, a file in the working directory could shadow a module.
_COMMAND: Final = (sys.executable, "-P", "-m", "kohort.console.placing")

log = logging.getLogger("kohort.console")


class NeedsSolverError(Exception):
    """Greedy answers aren't proved to be the best."""


class Placing:
    """Places groups for pages.

    Args:
        longest_s: time for a solver.
    """

    def __init__(self, longest_s: float = LONGEST_S) -> None:
        self._longest_s = longest_s
        self._solving = asyncio.Lock()

    async def compare(self, group: Group, changes: Sequence[Change]) -> tuple[str, Comparison]:
        """The placement that the group has, and the one that it would get after changes; by which assignor.

        Raises:
            InfeasibleError: there are tasks and no members.
            ValueError: one of the changes can't be made.
        """
        try:
            return "optimal", await asyncio.to_thread(compare, group, changes, {"optimal": _quick})
        except NeedsSolverError:
            pass
        async with self._solving:
            solved = await self._solve(group, changes)
        if solved is not None:
            return "optimal", solved
        return "sticky", await asyncio.to_thread(compare, group, changes, {"sticky": ASSIGNORS["sticky"]})

    async def _solve(self, group: Group, changes: Sequence[Change]) -> Comparison | None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
        try:
            async with time_limit(self._longest_s):
                answer, _ = await process.communicate(pickle.dumps((group, tuple(changes))))
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            log.warning("a solver for a page has ended with %s", process.returncode)
            return None
        found: Comparison | None = pickle.loads(answer)
        return found


def _quick(group: Group) -> Placement:
    found = place_without_solver("optimal", group)
    if found is None:
        raise NeedsSolverError
    return found


def main() -> None:
    """What the process does."""
    group, changes = pickle.load(sys.stdin.buffer)
    try:
        found = compare(group, changes, {"optimal": ASSIGNORS["optimal"]})
    except MissingExtraError:
        found = None
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    main()
