"""What a program does that its author may not expect: told when it starts, and in its description."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Unbounded:
    """A store that grows with time, or with each row, and that nothing bounds.

    State that is kept by key, as an aggregate without windows or a table, isn't such: it grows with the keys alone.

    Attributes:
        store: its name.
        keeps: what it keeps, and until when.
        instead: what bounds it, with a time that "forever" may stand for; or, after `why_not`, how to say that it is
            meant.
        at: where it is written.
        meant: whether the program says so itself ("forever").
        why_not: why nothing can bound it; "" where something can.
    """

    store: str
    keeps: str
    instead: str
    at: str
    meant: bool
    why_not: str = ""

    @property
    def advice(self) -> str:
        """What to say in the program."""
        if self.why_not:
            return f"{self.instead} if that is meant: {self.why_not}"
        return f'{self.instead}, or "forever" instead of the time'


@dataclass(frozen=True)
class Moved:
    """A join whose rows go through a topic that the program doesn't speak of.

    Attributes:
        topic: its name.
        why: which rows, and why.
        at: where the join is written.
        spared: how the program could do without, for its description alone; "" if it can't.
    """

    topic: str
    why: str
    at: str
    spared: str = ""


Note = Unbounded | Moved


def described(notes: Iterable[Note]) -> str:
    """Notes as a topology's description ends with them; "" if there are none."""
    unbounded = [
        f"    {each.store}: it keeps {each.keeps} ({each.at})\n" for each in notes if isinstance(each, Unbounded)
    ]
    moved = [f"    {each.topic}: {each.why}{each.spared} ({each.at})\n" for each in notes if isinstance(each, Moved)]
    sections = (("Unbounded state", unbounded), ("Repartitioned for joins", moved))
    return "".join(f"  {title}:\n{''.join(lines)}" for title, lines in sections if lines)


def tell(application_id: str, notes: Iterable[Note]) -> None:
    """Logs notes, once for each start."""
    for each in notes:
        if isinstance(each, Moved):
            log.info("%s: rows go through topic %s for a join: %s (%s)", application_id, each.topic, each.why, each.at)
        elif not each.meant:
            log.warning(
                "%s: store %s is unbounded: it keeps %s. Say %s (%s)",
                application_id, each.store, each.keeps, each.advice, each.at,
            )  # fmt: skip
