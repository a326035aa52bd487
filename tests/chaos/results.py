"""The application of flights under fire, and what it has put out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from .committed import CommittedRecords
from .flights import AIRLINES, Airline, FlightRecord, batch_result, made_up
from .scenarios import Delivered, Record

__all__ = ["FlightDelays", "Results"]


class FlightDelays:
    """Delays of flights by airport and hour, with the airline's name joined."""

    name = "flights"
    inputs = ("flights", "airlines")
    outputs = ("delays-by-hour",)

    def __init__(self) -> None:
        self._sent = 0

    def first(self) -> list[Airline]:
        """The table."""
        return [Airline(code) for code in AIRLINES]

    def made_up(self, seed: int, number: int) -> list[FlightRecord]:
        """Flights."""
        flights = made_up(seed, number, self._sent)
        self._sent += number
        return flights

    def endings(self) -> Iterable[Sequence[Record]]:
        """Nothing waits."""
        return ()

    def outcome(self, servers: str, partitions: int) -> Results:
        """Follow the groups."""
        return Results(servers, partitions)


class Results:
    """The last value of each group in the output topic, followed from its beginning.

    Attributes:
        groups: by airport and the hour's beginning (ms since 1970).
        records: how many were read.
    """

    def __init__(self, servers: str, partitions: int) -> None:
        self.groups: dict[tuple[str, int], dict[str, Any]] = {}
        self.records = 0
        self._records = CommittedRecords(servers, FlightDelays.outputs, partitions)

    def close(self) -> None:
        """Disconnect."""
        self._records.close()

    def read(self, seconds: float = 0.5) -> None:
        """Take what has come."""
        for message in self._records.take(seconds):
            value = json.loads(message.value() or b"")
            hour = datetime.fromisoformat(value["window"])
            self.groups[value["origin"], int(hour.timestamp() * 1000)] = value
            self.records += 1

    def summary(self, delivered: Iterable[Delivered]) -> str:
        """What was compared."""
        result = batch_result(delivered)
        return (
            f"{len(result.groups):,} groups; {result.late:,} were late, {result.keyless:,} had no key, "
            f"{result.empty:,} no value"
        )

    @property
    def flights(self) -> int:
        """How many flights the groups count."""
        return sum(group["n"] for group in self.groups.values())

    def differences(self, delivered: Iterable[Delivered]) -> list[str]:
        """Where they differ from what a batch over the records gives."""
        expected = batch_result(delivered).groups
        found = [f"{group} shouldn't be there: {self.groups[group]}" for group in self.groups.keys() - expected.keys()]
        for group, summary in expected.items():
            if group not in self.groups:
                found.append(f"{group} is missing: {summary}")
            elif not _same(summary, self.groups[group]):
                found.append(f"{group} is {self.groups[group]} instead of {summary}")
        return found


def _same(expected: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(
        abs(given[name] - value) < 1e-9 * max(1, abs(value)) if isinstance(value, float) else given[name] == value
        for name, value in expected.items()
    )
