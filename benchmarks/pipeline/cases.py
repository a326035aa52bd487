"""What contenders compute: the records, what a batch makes of them, and how results are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

import pyarrow as pa

from benchmarks.pipeline import auctions, flights
from benchmarks.pipeline.auctions import AuctionResults, Groups
from benchmarks.pipeline.flights import Expected, Group
from benchmarks.pipeline.results import Results
from benchmarks.pipeline.watcher import Watcher

ExpectedT = TypeVar("ExpectedT")


class Case(ABC, Generic[ExpectedT]):
    """What all contenders compute.

    Attributes:
        name: on the command line.
        title: in tables.
        things: what the records are.
        measures: what can be measured with it, by methods of `Bench`.
    """

    name: str
    title: str
    things: str
    measures: tuple[str, ...]

    @abstractmethod
    def fill(self, servers: str, topic: str, records: int) -> None:
        """Produce so many records, as fast as it goes."""

    @abstractmethod
    def batch(self, records: int) -> tuple[ExpectedT, int]:
        """What a batch makes of so many records, and of how many of them results tell."""

    @abstractmethod
    def results(self, servers: str, topic: str, partitions: int, records: int) -> Watcher[ExpectedT]:
        """Reads the results of so many records."""


class Flights(Case[Mapping[Group, Expected]]):
    """Few groups, each with many records.

    Attributes:
        table: as `flights.load` gives them.
    """

    name, title, things = "flights", "Delays by origin and hour", "flights"
    measures = ("start", "throughput", "latency", "pause", "epochs", "reading")

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def fill(self, servers: str, topic: str, records: int) -> None:
        """Produce so many records, as fast as it goes."""
        flights.fill(servers, topic, self.table, records)

    def batch(self, records: int) -> tuple[Mapping[Group, Expected], int]:
        """What a batch makes of so many records, and of how many of them results tell."""
        expected = flights.batch(self.table, records)
        return expected, sum(group.n for group in expected.values())

    def results(self, servers: str, topic: str, partitions: int, records: int) -> Results:
        """Reads the results of so many records."""
        return Results(servers, topic, partitions)


class Auctions(Case[Groups]):
    """Many groups, each with few records."""

    name, title, things = "auctions", "Bids by auction and day", "bids"
    measures = ("throughput",)

    def fill(self, servers: str, topic: str, records: int) -> None:
        """Produce so many records, as fast as it goes."""
        auctions.fill(servers, topic, records)

    def batch(self, records: int) -> tuple[Groups, int]:
        """What a batch makes of so many records, and of how many of them results tell."""
        return auctions.batch(records), records

    def results(self, servers: str, topic: str, partitions: int, records: int) -> AuctionResults:
        """Reads the results of so many records."""
        return AuctionResults(servers, topic, partitions, records)
