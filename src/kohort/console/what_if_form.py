"""What-if on a group's page of placement: the form's fields, as changes of the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from kohort.console.record_ranges import ChoiceError
from kohort.coordinator.placement.what_if import Change, parse_change

MOST_INSTANCES: Final = 1_000
"""That may be added at once: a browser waits for it."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What was asked for; fields as they were filled in, "" where nothing was.

    Attributes:
        add: instances more.
        tags: of those, such as "zone=a".
        remove: a member or a process that goes.
        standbys: standbys wanted of each stateful task.
        changes: all of it, in the order in which it is made.
    """

    add: str
    tags: str
    remove: str
    standbys: str
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Reads a form's fields.

        Raises:
            ChoiceError: one makes no sense.
        """
        add, tags, standbys = (fields.get(name, "").strip() for name in ("add", "tags", "standbys"))
        remove = fields.get("remove", "")
        changes: list[Change] = []
        if remove:
            changes.append(parse_change(f"remove={remove}"))
        if add not in ("", "0"):
            if not (add.isascii() and add.isdigit() and len(add) < 5 and int(add) <= MOST_INSTANCES):
                raise ChoiceError(f"{add!r} is no number of instances from 0 to {MOST_INSTANCES:,}")
            changes.append(_parsed(f"add={add}" + (f",{tags}" if tags else ""), f"{tags!r}: tags look like zone=a"))
        if standbys:
            changes.append(_parsed(f"standbys={standbys}", f"{standbys!r} is no number of standbys"))
        return cls(add, tags, remove, standbys, tuple(changes))

    @property
    def fields(self) -> dict[str, str]:
        """Those that were filled in."""
        found = {"add": self.add, "tags": self.tags, "remove": self.remove, "standbys": self.standbys}
        return {name: text for name, text in found.items() if text}


def _parsed(text: str, otherwise: str) -> Change:
    try:
        return parse_change(text)
    except ValueError:
        raise ChoiceError(otherwise) from None
