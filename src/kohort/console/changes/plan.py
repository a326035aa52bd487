"""What all changes share: a plan says what will happen, and is bound to what it was made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.console.changes.fields import Fields
from kohort.console.live import Cell
from kohort.console.record_ranges import ChoiceError
from kohort.console.words import NOTHING, number, visible

__all__ = ["MOST_ROWS", "Access", "Change", "Done", "Plan", "cell", "check_rows", "count"]

MOST_ROWS: Final = 2_000
"""Rows of a plan. All that will happen is shown, so what has more is refused."""


class Access(NamedTuple):
    """With what a change is made: a started client, and settings for others, of the user whose rights count."""

    admin: Admin
    config: ClientConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a change will do.

    Attributes:
        action, target: which change, of which group or topic.
        title: it in a few words.
        effects: what will happen, in sentences.
        warnings: what should be thought of before.
        blocked: why it can't be done now; "" if it can.
        columns, rows: what will happen in detail; columns that begin with > hold numbers.
        basis: what the plan was made from: if that is another one when the plan is confirmed, nothing is done.
        work: what to do then, exactly.
        told: what the audit log says of it: before and after.
    """

    action: str
    target: str
    title: str
    effects: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    blocked: str = ""
    columns: tuple[str, ...] = ()
    rows: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    basis: object = None
    work: Any = None
    told: Mapping[str, Any] = field(default_factory=dict)


class Done(NamedTuple):
    """What was done: a sentence, and what the audit log says of it."""

    text: str
    told: Mapping[str, Any] = {}


class Change(ABC):
    """A kind of change.

    Raises, of all methods: ChoiceError if the form makes no sense; ClientError or KafkaError if the cluster doesn't
    answer, or refuses.
    """

    action: ClassVar[str]
    """Its name in forms and in the audit log."""

    @abstractmethod
    async def plan(self, access: Access, fields: Fields) -> Plan:
        """What it would do; changes nothing."""

    async def other(self, access: Access, fields: Fields, plan: Plan) -> Plan | None:
        """The plan as it would be now, if that isn't the one that was shown; None if it is."""
        now = await self.plan(access, fields)
        return None if now.basis == plan.basis and not now.blocked else now

    @abstractmethod
    async def do(self, access: Access, plan: Plan) -> Done:
        """Does what was shown."""


def cell(value: object) -> Cell:
    """A value as text."""
    return Cell(NOTHING if value is None else visible(str(value)))


def count(value: int | None) -> Cell:
    """A whole number."""
    return Cell(number(value))


def check_rows(rows: int, what: str) -> None:
    """Refuses a plan with more rows than a page shows.

    Raises:
        ChoiceError: it has more.
    """
    if rows > MOST_ROWS:
        raise ChoiceError(f"that is {rows:,} {what}, and a page shows {MOST_ROWS:,} at most: choose fewer at a time")
