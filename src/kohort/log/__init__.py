"""One partition on disk, in Kafka's own segment format.

`Log` is a partition; `DataDirectory` is what holds them, with Kafka's checkpoints. Nothing here knows asyncio or reads
a clock: the time is passed in, in ms since 1970. A log belongs to one thread; what may run elsewhere says so.
"""

from kohort.log.config import LogConfig
from kohort.log.data_directory import DataDirectory
from kohort.log.log import Log
from kohort.log.types import Aborted, AppendInfo, Origin, ProducerSummary, TimestampedOffset

__all__ = [
    "Aborted", "AppendInfo", "DataDirectory", "Log", "LogConfig", "Origin", "ProducerSummary", "TimestampedOffset",
]  # fmt: skip
