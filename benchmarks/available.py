"""Which contenders of a benchmark can run on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from rich.console import Console


class Contender(Protocol):
    """Who takes part."""

    title: str

    def missing(self) -> str | None:
        """What isn't there on this machine."""


_C = TypeVar("_C", bound=Contender)


def available(contenders: Iterable[_C], console: Console) -> list[_C]:
    """Those that can run; says of the others what they lack."""
    found = []
    for contender in contenders:
        if missing := contender.missing():
            console.print(f"without {contender.title}: {missing}")
        else:
            found.append(contender)
    return found
