"""Finds the records that make a job fail: one that fails is run again by halves, until a record fails alone.

So a record that nothing can be made of costs some jobs, and not its neighbours. Where all fails, as without a database
that the work needs, it's not the records: after so many failures the rest is given up without being tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

R = TypeVar("R")

MOST_FAILURES: Final = 24
"""Of jobs in an epoch. To find one record of a million takes 21."""


@dataclass
class Halved(Generic[R]):
    """What came of it.

    Attributes:
        results: of what could be done.
        failed: the rows that couldn't, with the error.
        given_up: whether there were too many failures to try them all.
    """

    results: list[R] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    given_up: bool = False


async def halved(
    rows: int, run: Callable[[int, int], Awaitable[R]], explain: Callable[[Exception], str | None]
) -> Halved[R]:
    """Runs rows, and the halves of what fails.

    Args:
        rows: how many there are.
        run: runs those from one to before another.
        explain: an error as a sentence; None where trying again can't help, which gives up.
    """
    made: Halved[R] = Halved()
    left = [(0, rows)] if rows else []
    failures = 0
    why = ""
    while left:
        start, end = left.pop()
        if made.given_up:
            made.failed.update(dict.fromkeys(range(start, end), why))
            continue
        try:
            made.results.append(await run(start, end))
            continue
        except Exception as error:
            failures += 1
            explained = explain(error)
            why = explained or str(error)
            made.given_up = explained is None or failures >= MOST_FAILURES
        if made.given_up or end - start == 1:
            made.failed.update(dict.fromkeys(range(start, end), why))
        else:
            middle = (start + end) // 2
            left += [(middle, end), (start, middle)]
    return made
