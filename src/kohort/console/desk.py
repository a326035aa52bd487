"""What one user's pages are made with: all of it asks the cluster by that user's name, and is let do what they may."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.console.changes.plan import Access
from kohort.console.cluster_reader import ClusterReader
from kohort.console.record_decoding import RecordDecoder
from kohort.console.record_reader import RecordReader
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.watcher import Watcher

__all__ = ["Desk", "desk_of"]


class Desk(NamedTuple):
    """The parts.

    Attributes:
        watcher: what is known of groups.
        growth: what is known of topics.
        reader: asks the brokers for topics.
        records: reads records.
        access: changes things; None if nothing is changed.
    """

    watcher: Watcher
    growth: TopicWatcher
    reader: ClusterReader
    records: RecordReader
    access: Access | None

    async def run(self) -> None:
        """Looks at groups and topics until it is cancelled; somebody has to, beside what pages ask."""
        try:
            await asyncio.gather(self.watcher.run(), self.growth.run())
        finally:
            self.records.close()


def desk_of(admin: Admin, config: ClientConfig, every: float, decoder: RecordDecoder | None = None) -> Desk:
    """The parts, of a client that is started, and its settings.

    Args:
        admin: the client.
        config: its settings.
        every: seconds from one look at the groups to the next.
        decoder: of records; any number of desks may have the same, since it asks no broker.
    """
    reader = ClusterReader(admin)
    return Desk(
        Watcher(reader, every=every),
        TopicWatcher(reader, every=every),
        reader,
        RecordReader(config, admin, decoder),
        Access(admin, config),
    )
