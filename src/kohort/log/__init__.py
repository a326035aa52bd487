"""Partitions on disk, in Kafka's segment format.

`Log` is a partition; `DataDirectory` holds the logs and Kafka's checkpoint files. Nothing here uses asyncio or reads a
clock: the time is an argument, in ms since 1970. A log belongs to one thread, except for methods that say otherwise.
"""

from kohort.log.config import LogConfig
from kohort.log.data_directory import DataDirectory
from kohort.log.log import Log
from kohort.log.types import Aborted, AppendInfo, Origin, ProducerSummary, TimestampedOffset

__all__ = [
    "Aborted", "AppendInfo", "DataDirectory", "Log", "LogConfig", "Origin", "ProducerSummary", "TimestampedOffset",
]  # fmt: skip
