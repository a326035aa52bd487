"""The log manager: the broker's data directory, the metadata log, and a log for each partition."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.component_settings import log_config
from kohort.broker.metadata_log import unusable
from kohort.broker.topics import Partition, Topic
from kohort.log import DataDirectory, Log, LogConfig
from kohort.log.aside import asides
from kohort.log.damage import Report, tell
from kohort.log.data_directory import PartitionName, read_topic_id, text_uuid, uuid_text, write_topic_id
from kohort.protocol.schema import NO_UUID
from kohort.protocol.stored.cluster_metadata import METADATA_TOPIC

log = logging.getLogger("kohort.broker.log_manager")

_METADATA: Final = PartitionName(METADATA_TOPIC, 0)
_METADATA_CONFIG: Final = LogConfig(retention_ms=-1, max_message_bytes=100 * 1024 * 1024)
_STRAY: Final = "-stray"


class LogManager:
    """Opens, configures, checkpoints and closes logs.

    Args:
        node_id: the node that the directory belongs to from now on.
        durable: whether the high watermark waits for a sync.
        clock: ms since 1970.
        report: hears what is lost or wrong in a log.

    Attributes:
        cluster_id: created with the directory.
        metadata: the log of `__cluster_metadata`.

    Raises:
        OSError: the directory or the metadata log can't be used, or another server uses the directory.
        ConfigError: it belongs to another node.
    """

    def __init__(
        self,
        directory: Path,
        node_id: int,
        *,
        durable: bool,
        settings: Settings,
        clock: Callable[[], int],
        report: Report = tell,
    ) -> None:
        self.directory = directory
        self._durable = durable
        self._settings = settings
        self._clock = clock
        self._report = report
        self._used: set[PartitionName] = set()
        self._data = DataDirectory(directory)
        try:
            self.cluster_id = self._load_or_create_cluster_id(node_id)
            self.metadata = self._open_metadata()
        except BaseException:
            self._data.close({})
            raise

    def _load_or_create_cluster_id(self, node_id: int) -> str:
        properties = self._data.properties()
        if properties is None:
            properties = {
                "version": "1",
                "cluster.id": uuid_text(uuid.uuid4()),
                "node.id": str(node_id),
                "directory.id": uuid_text(uuid.uuid4()),
            }
            self._data.write_properties(properties)
        if properties.get("node.id") != str(node_id):
            raise ConfigError(
                f"{self.directory / 'meta.properties'} says that this data is of node.id={properties.get('node.id')}, "
                f"but the configuration says node.id={node_id}: set it so, or give another data directory"
            )
        return properties.get("cluster.id", "")

    @property
    def directory_id(self) -> uuid.UUID:
        """The directory's id of `meta.properties`; zero if there is none that can be read."""
        try:
            return text_uuid((self._data.properties() or {}).get("directory.id", ""))
        except ValueError:
            return NO_UUID

    def _open_metadata(self) -> Log:
        flushed = self._data.recovery_point(_METADATA)
        directory = self.directory / str(_METADATA)
        if flushed and not directory.exists():
            raise unusable(directory, f"it isn't there, but it was on the disk up to offset {flushed - 1}")
        _hide(directory)
        opened = self._data.open_log(
            _METADATA, _METADATA_CONFIG, now=self._clock(), durable=self._durable, contiguous=True, report=self._report
        )
        reason = opened.offline
        if reason is None and (aside := asides(opened.directory)):
            reason = f"batches after a damage are set aside in {', '.join(aside)}"
        if reason is None and opened.log_end_offset < flushed:
            reason = (
                f"it ends at offset {opened.log_end_offset}, but it was on the disk up to {flushed} "
                "(to go on with what is left, remove its line from recovery-point-offset-checkpoint)"
            )
        if reason is not None:
            opened.close(clean=False)
            raise unusable(directory, reason)
        return opened

    def open(self, topic: Topic, indexes: range, *, new: bool = False) -> Iterator[Log]:
        """Opens or creates the logs of partitions; sets aside those of a deleted topic with the same name.

        Args:
            new: whether the partitions are being created.
        """
        config = log_config(self._settings, topic.configs)
        return (self._open(topic, index, config, new) for index in indexes)

    def _open(self, topic: Topic, index: int, config: LogConfig, new: bool) -> Log:
        name = PartitionName(topic.name, index)
        directory = self.directory / str(name)
        topic_id = read_topic_id(directory)
        existing = not new
        if topic_id is not None and topic_id != topic.id:
            _set_aside(directory, "belongs to another topic of that name")
            topic_id, existing = None, False
        opened = self._data.open_log(
            name, config, now=self._clock(), durable=self._durable, existing=existing, report=self._report
        )
        if topic_id is None and opened.offline is None:
            try:
                write_topic_id(directory, topic.id)
            except OSError as error:
                log.warning("%s: the topic id can't be written: %s; the next start tries again", directory, error)
        return opened

    def reopen(self, partition: Partition) -> bool:
        """Opens the log of a partition again that is offline for want of file descriptors.

        Returns:
            Whether it is online.
        """
        old = partition.log
        name = PartitionName(partition.topic.name, partition.index)
        if old.loaded:
            self._used.add(name)
        old.close(clean=False)
        opened = self._data.open_log(
            name,
            old.config,
            now=self._clock(),
            durable=self._durable,
            existing=True,
            report=self._report,
            used=name in self._used,
        )
        partition.log = opened
        if opened.offline is not None:
            return False
        self._used.discard(name)
        log.warning("%s is online again", partition)
        return True

    def set_aside_strays(self, topics: Iterable[Topic]) -> None:
        """Renames the directories of partitions that no topic has. All topics must be loaded."""
        known = {(topic.name, partition.index) for topic in topics for partition in topic.partitions}
        for name in self._data.partitions():
            if name != _METADATA and name not in known:
                _set_aside(self.directory / str(name), "belongs to no topic")

    def remove(self, log: Log) -> None:
        log.delete()

    def configure(self, topic: Topic) -> None:
        config = log_config(self._settings, topic.configs)
        for partition in topic.partitions:
            partition.log.config = config

    def reconfigure(self, topics: Iterable[Topic], settings: Settings) -> None:
        """Applies a new broker configuration to all logs."""
        self._settings = settings
        for topic in topics:
            self.configure(topic)

    def checkpoint(self, logs: dict[PartitionName, Log]) -> None:
        """Writes the checkpoints: recovery point, log start offset, and cleaner offset of each log. Runs in any thread.

        Raises:
            OSError: it can't be written.
        """
        self._data.checkpoint(logs)

    def close(self, logs: dict[PartitionName, Log]) -> None:
        """Flushes and closes all logs, and marks a clean shutdown."""
        self._data.close(logs)

    def logs(self, topics: Iterable[Topic]) -> dict[PartitionName, Log]:
        """All logs, with the metadata log."""
        logs = {
            PartitionName(topic.name, partition.index): partition.log
            for topic in topics
            for partition in topic.partitions
        }
        return logs | {_METADATA: self.metadata}


def _set_aside(directory: Path, reason: str) -> None:
    stray = directory.with_name(f"{directory.name[:200]}.{uuid.uuid4().hex}{_STRAY}")
    log.warning("%s %s and is set aside as a stray: %s", directory, reason, stray.name)
    directory.rename(stray)


def _hide(directory: Path) -> None:
    """Makes a directory that others can't look into, for what SCRAM's users are known by; takes that from an old one.

    Raises:
        OSError: it can't be made, or isn't ours.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    mode = directory.stat().st_mode
    if mode & 0o007:
        directory.chmod(mode & 0o770)
