"""What is put under fire: an application, the records it gets, and what must come of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

__all__ = ["APPLICATION", "INSTANCES", "Delivered", "Outcome", "Record", "Scenario"]

APPLICATION: Final = "delays"
"""The id of the application, and of its group."""
INSTANCES: Final = ("one", "two")


class Record(Protocol):
    """What is written to a topic."""

    @property
    def topic(self) -> str:
        """Its name."""

    @property
    def key(self) -> str | None:
        """As text."""

    @property
    def value(self) -> bytes | None:
        """As it is written."""


class Delivered(NamedTuple):
    """A record, and where it lies."""

    partition: int
    offset: int
    record: Record


class Outcome(Protocol):
    """What the application has put out, followed from its beginning."""

    def read(self, seconds: float = 0.5) -> None:
        """Take what has come."""

    def differences(self, delivered: Collection[Delivered]) -> list[str]:
        """Where it differs from what a batch over the records gives."""

    def summary(self, delivered: Collection[Delivered]) -> str:
        """What was compared."""

    def close(self) -> None:
        """Disconnect."""


class Scenario(Protocol):
    """An application under fire. It makes up records whose time goes on from round to round."""

    @property
    def name(self) -> str:
        """Of the program."""

    @property
    def inputs(self) -> Sequence[str]:
        """Topics that it reads."""

    @property
    def outputs(self) -> Sequence[str]:
        """Topics that it writes."""

    def first(self) -> Iterable[Record]:
        """Records that are there before it begins."""

    def made_up(self, seed: int, number: int) -> Sequence[Record]:
        """About so many records that follow upon all that were made up before."""

    def endings(self) -> Iterable[Sequence[Record]]:
        """What is sent at a round's end: some records when all that was sent before has come out, then more."""

    def outcome(self, servers: str, partitions: int) -> Outcome:
        """Follow what comes out."""
