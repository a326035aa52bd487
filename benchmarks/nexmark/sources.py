"""Nexmark's topics as streams and tables of an application."""

from __future__ import annotations

from functools import cached_property

from benchmarks.nexmark.topics import AUCTION, BID, PERSON, SIDE_INPUT, Topic
from kohort.spark import GlobalTable, Stream, StreamsApp


class Sources:
    """What queries read.

    Args:
        app: whose streams they are.
        prefix: of the topics' names.
    """

    def __init__(self, app: StreamsApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    @cached_property
    def persons(self) -> Stream:
        """Persons, keyed by their id, at the time when they registered."""
        return self._stream(PERSON)

    @cached_property
    def auctions(self) -> Stream:
        """Auctions, keyed by their id, at the time when they were opened."""
        return self._stream(AUCTION)

    @cached_property
    def bids(self) -> Stream:
        """Bids, keyed by their auction, at the time when they were made."""
        return self._stream(BID)

    @cached_property
    def side_input(self) -> GlobalTable:
        """Numbers and a text for each."""
        return self._app.global_table(f"{self._prefix}-{SIDE_INPUT.name}", schema=SIDE_INPUT.schema, key=SIDE_INPUT.key)

    def _stream(self, topic: Topic) -> Stream:
        return self._app.stream(
            f"{self._prefix}-{topic.name}",
            schema=topic.schema,
            key=topic.key,
            event_time="dateTime",
            timestamp_format="timestamp_millis",
        )
