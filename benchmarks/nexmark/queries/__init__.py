"""The queries as programs of Kohort: one a file, by the query's name, with a function `program`.

q5 gives the auctions of a window as an array, q7 columns of the best row as a struct, q10 a topic instead of files of a
table. q18 and q19 are aggregates, of one record a group; `latest_by` and `top` give rows instead.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from benchmarks.nexmark.sources import Sources

NAMES: Final = (
    "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "q16",
    "q17", "q18", "q19", "q20", "q21", "q22",
)  # fmt: skip


def program(name: str) -> Callable[[Sources, str], None]:
    """The program of a query: a function of where it reads, and of the topic that it writes."""
    found: Callable[[Sources, str], None] = import_module(f"{__name__}.{name}").program
    return found
