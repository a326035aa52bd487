"""Apache Kafka without streams groups, for applications that join classic groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .apache_kafka import ApacheKafka
from .newest_kafka import FLAGS
from .servers import QUICK, QUICK_KRAFT


class OlderKafka(ApacheKafka):
    """A node of an older version that is broker and controller.

    Args:
        directory: for its data and what it prints; must not be another server's.
        version: "3.9" or "3.3", the first whose KRaft mode is for production.
        settings: what differs from quick ones.
    """

    def __init__(self, directory: Path, version: str, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, QUICK | QUICK_KRAFT | dict(settings or {}), FLAGS)
        self.project = f"kafka_{version.replace('.', '_')}"
