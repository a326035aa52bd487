"""The broker's data directory: whose it is, the metadata log, and a log for each partition."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.component_settings import log_config
from kohort.broker.metadata_log import unusable
from kohort.broker.topics import Partition, Topic
from kohort.log import DataDirectory, Log, LogConfig
from kohort.log.data_directory import PartitionName, read_topic_id, uuid_text, write_topic_id
from kohort.protocol.stored.cluster_metadata import METADATA_TOPIC

__all__ = ["LogManager"]

log = logging.getLogger("kohort.broker.log_manager")

_METADATA: Final = PartitionName(METADATA_TOPIC, 0)
_METADATA_CONFIG: Final = LogConfig(retention_ms=-1, max_message_bytes=100 * 1024 * 1024)
_STRAY: Final = "-stray"


class LogManager:
    """Opens, configures, checkpoints and closes logs.

    Args:
        directory: the data directory.
        node_id: the node's id, which the directory belongs to from now on.
        durable: whether records may be read only when they are on the disk.
        settings: gives the configuration that is in force.
        clock: ms since 1970.

    Attributes:
        cluster_id: made when the directory was.

    Raises:
        OSError: the directory can't be used, or another server uses it.
        ConfigError: it belongs to another node.
    """

    def __init__(
        self,
        directory: Path,
        node_id: int,
        *,
        durable: bool,
        settings: Callable[[], Settings],
        clock: Callable[[], int],
    ) -> None:
        self.directory = directory
        self._durable = durable
        self._settings = settings
        self._clock = clock
        self._data = DataDirectory(directory)
        try:
            self.cluster_id = self._identify(node_id)
        except BaseException:
            self._data.close({})
            raise
        self._metadata: Log | None = None

    def _identify(self, node_id: int) -> str:
        known = self._data.properties()
        if known is None:
            known = {
                "version": "1",
                "cluster.id": uuid_text(uuid.uuid4()),
                "node.id": str(node_id),
                "directory.id": uuid_text(uuid.uuid4()),
            }
            self._data.write_properties(known)
        if known.get("node.id") != str(node_id):
            raise ConfigError(
                f"{self.directory / 'meta.properties'} says that this data is of node.id={known.get('node.id')}, "
                f"but the configuration says node.id={node_id}: set it so, or give another data directory"
            )
        return known.get("cluster.id", "")

    def open_metadata(self) -> Log:
        """The log of `__cluster_metadata`.

        Raises:
            OSError: it can't be used, or isn't whole; says what to do. The directory isn't locked any more then.
        """
        opened = self._data.open_log(_METADATA, _METADATA_CONFIG, now=self._clock(), durable=self._durable)
        reason = opened.offline
        if reason is None and opened.log_end_offset < (flushed := self._data.recovery_point(_METADATA)):
            reason = (
                f"it ends at offset {opened.log_end_offset}, but it was on the disk up to {flushed} "
                "(to go on with what is left, remove its line from recovery-point-offset-checkpoint)"
            )
        if reason is not None:
            opened.close(clean=False)
            self._data.close({})
            raise unusable(opened, reason)
        self._metadata = opened
        return opened

    def open(self, topic: Topic, indexes: range) -> list[Log]:
        """The logs of a topic's partitions, new where there are none; a deleted topic's of that name go aside."""
        config = log_config(self._settings(), topic.configs)
        return [self._open(topic, index, config) for index in indexes]

    def _open(self, topic: Topic, index: int, config: LogConfig) -> Log:
        name = PartitionName(topic.name, index)
        directory = self.directory / str(name)
        known = read_topic_id(directory)
        if known is not None and known != topic.id:
            _put_aside(directory, "belongs to another topic of that name")
            known = None
        opened = self._data.open_log(name, config, now=self._clock(), durable=self._durable)
        if known is None and opened.offline is None:
            try:
                write_topic_id(directory, topic.id)
            except OSError as error:
                log.warning("%s: can't be marked as the topic's: %s; the next start will do", directory, error)
        return opened

    def put_strays_aside(self, topics: Iterable[Topic]) -> None:
        """Rename directories of partitions that no topic has, when all topics are known."""
        known = {(topic.name, partition.index) for topic in topics for partition in topic.partitions}
        for name in self._data.partitions():
            if name != _METADATA and name not in known:
                _put_aside(self.directory / str(name), "belongs to no topic")

    def remove(self, partition: Partition) -> None:
        """Delete a partition's log."""
        partition.log.delete()

    def configure(self, topic: Topic) -> None:
        """Let the topic's partitions follow its configuration."""
        config = log_config(self._settings(), topic.configs)
        for partition in topic.partitions:
            partition.log.config = config

    def checkpoint(self, logs: dict[PartitionName, Log]) -> None:
        """Note how far each log is flushed, deleted and compacted; in any thread.

        Raises:
            OSError: it can't be written.
        """
        self._data.checkpoint(logs)

    def close(self, logs: dict[PartitionName, Log]) -> None:
        """Flush and close all logs, and note that nothing has to be recovered."""
        self._data.close(logs)

    def logs(self, topics: Iterable[Topic]) -> dict[PartitionName, Log]:
        """All logs there are, that of the metadata included."""
        logs = {
            PartitionName(topic.name, partition.index): partition.log
            for topic in topics
            for partition in topic.partitions
        }
        if self._metadata is not None:
            logs[_METADATA] = self._metadata
        return logs


def _put_aside(directory: Path, reason: str) -> None:
    stray = directory.with_name(f"{directory.name[:200]}.{uuid.uuid4().hex}{_STRAY}")
    log.warning("%s %s and is put aside as a stray: %s", directory, reason, stray.name)
    directory.rename(stray)
