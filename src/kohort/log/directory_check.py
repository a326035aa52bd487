"""Checks a whole data directory, and mends what can be."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kohort.log.checking import Checkpoints, Finding, check_partition
from kohort.log.checkpoints import parse_offsets, render_offsets
from kohort.log.damage import Range
from kohort.log.data_directory import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    DELETE,
    LOG_STARTS,
    RECOVERY_POINTS,
    PartitionName,
)  # fmt: skip
from kohort.log.files import LOG, offset_of, write_atomically
from kohort.log.repair import repair_partition
from kohort.log.salvage import Gap, batches_and_gaps
from kohort.protocol.errors import CorruptRecordError, ProtocolError
from kohort.protocol.records.rows import read_records
from kohort.protocol.stored.cluster_metadata import (
    METADATA_TOPIC,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_metadata,
)  # fmt: skip

STRAY: Final = "-stray"
METADATA: Final = PartitionName(METADATA_TOPIC, 0)
_FILES: Final = (RECOVERY_POINTS, LOG_STARTS, CLEANED_OFFSETS)
_TOPIC: Final = 2


@dataclass
class _Metadata:
    """What the metadata log says, as far as it can be read.

    Attributes:
        whole: whether it has all records from the first on: Apache Kafka removes those that a snapshot has.
    """

    partitions: set[PartitionName] = field(default_factory=set)
    compacted: set[str] = field(default_factory=set)
    unreadable: int = 0
    whole: bool = False


class DirectoryCheck:
    """A data directory, read as it is; a server may use it meanwhile.

    Attributes:
        clean: whether the last server stopped cleanly.
        findings: of the files of the directory itself.

    Raises:
        OSError: it can't be read.
        ValueError: it isn't a data directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        names = [entry.name for entry in os.scandir(path)]
        if "meta.properties" not in names and not any(PartitionName.parse(name) for name in names):
            raise ValueError(f"{path} isn't a data directory: it has neither meta.properties nor partitions")
        self.clean = CLEAN_SHUTDOWN in names
        self.findings: list[Finding] = []
        self._offsets = [self._read(file) for file in _FILES]
        self._metadata = _read_metadata(path / str(METADATA))
        for name in sorted(names):
            if name.endswith(STRAY):
                what = "it belonged to no topic when a server started; move or remove it"
                self.findings.append(Finding(name, "stray", "", what, size=_size(path / name)))
            elif name.endswith(DELETE):
                what = "its topic is deleted; the next start removes it"
                self.findings.append(Finding(name, "left over", "", what, size=_size(path / name)))
        if self._metadata.unreadable:
            what = f"{self._metadata.unreadable} records can't be decoded"
            self.findings.append(Finding(str(METADATA), "metadata", "", what))

    def partitions(self) -> list[PartitionName]:
        """The partitions that have a directory."""
        with os.scandir(self.path) as entries:
            named = [PartitionName.parse(entry.name) for entry in entries if entry.is_dir()]
        return sorted(name for name in named if name is not None)

    def size(self, name: PartitionName) -> int:
        """Bytes of a partition's segments, which a check reads."""
        return sum(file.stat().st_size for file in (self.path / str(name)).glob(f"*{LOG}"))

    def check(self, name: PartitionName, advance: Callable[[int], None] = lambda _: None) -> Iterator[Finding]:
        """Yields what is wrong with a partition; `advance` as in `check_partition`.

        Raises:
            OSError: a file can't be read.
        """
        known = self._metadata.partitions
        if known and self._metadata.whole and name != METADATA and name not in known:
            what = "it belongs to no topic; the next start sets it aside"
            yield Finding(str(name), "stray", "", what)
        yield from check_partition(
            self.path / str(name), self.checkpoints(name), compacted=self._compacted(name), clean=self.clean,
            contiguous=name == METADATA, advance=advance,
        )  # fmt: skip

    def missing(self, names: Collection[PartitionName]) -> Iterator[Finding]:
        """Yields the partitions of topics, and the metadata log, that have no directory among `names`."""
        if METADATA not in names and (names or self.checkpoints(METADATA).recovery_point):
            lost = Range(0, self.checkpoints(METADATA).recovery_point)
            what = "it says which topics there are; restore it from a backup"
            yield Finding(str(METADATA), "missing directory", "", what, (lost,) if lost.end else ())
        for name in sorted(self._metadata.partitions.difference(names)):
            end = self.checkpoints(name).recovery_point
            what = f"the log had offsets up to {end - 1}" if end else "it was empty; the next start makes it"
            yield Finding(str(name), "missing directory", "", what)

    def checkpoints(self, name: PartitionName) -> Checkpoints:
        return Checkpoints(*(offsets.get(name, 0) for offsets in self._offsets))

    def repair(self, name: PartitionName, now: int) -> None:
        """Mends a partition; the lock of the directory must be held. Raises as `repair_partition`."""
        checkpoints = self.checkpoints(name)
        metadata = name == METADATA
        end = repair_partition(
            self.path / str(name), checkpoints, now=now, compacted=self._compacted(name), contiguous=metadata
        )
        for file, offsets in zip(_FILES, self._offsets, strict=True):
            # The metadata log goes on where it ends.
            if offsets.get(name, 0) > end and (metadata or file != RECOVERY_POINTS):
                offsets[name] = end if metadata else 0
                kept = sorted(item for item in offsets.items() if item[1])
                write_atomically(self.path / file, render_offsets(kept))

    def _compacted(self, name: PartitionName) -> bool:
        return name.topic in self._metadata.compacted or not self._metadata.whole

    def _read(self, file: str) -> dict[PartitionName, int]:
        try:
            return {PartitionName(*name): end for name, end in parse_offsets((self.path / file).read_text()).items()}
        except FileNotFoundError:
            return {}
        except ValueError as error:
            self.findings.append(Finding("", "wrong checkpoint", file, f"{error}; the next start ignores it"))
            return {}


def _size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("*") if file.is_file())


def _read_metadata(directory: Path) -> _Metadata:
    """Reads as much of the metadata log as is whole."""
    found = _Metadata()
    topics: dict[object, str] = {}
    counts: dict[object, set[int]] = {}
    for record in _records(directory, found):
        match record:
            case TopicRecord():
                topics[record.topic_id] = record.name
            case PartitionRecord():
                counts.setdefault(record.topic_id, set()).add(record.partition_id)
            case RemoveTopicRecord():
                topics.pop(record.topic_id, None)
            case ConfigRecord(resource_type=kind, name="cleanup.policy") if kind == _TOPIC:
                if "compact" in (record.value or ""):
                    found.compacted.add(record.resource_name)
                else:
                    found.compacted.discard(record.resource_name)
    for topic_id, name in topics.items():
        found.partitions.update(PartitionName(name, index) for index in counts.get(topic_id, ()))
    return found


def _records(directory: Path, found: _Metadata) -> Iterator[MetadataRecord]:
    for file in sorted(directory.glob(f"*{LOG}")):
        base = offset_of(file.name)
        if base is None:
            continue
        found.whole = found.whole or base == 0
        fd = os.open(file, os.O_RDONLY)
        try:
            for item in batches_and_gaps(fd, 0, os.fstat(fd).st_size, base_offset=base, least=base):
                if isinstance(item, Gap) or item.header.control:  # Apache Kafka's: who leads, where a snapshot ends
                    continue
                try:
                    values = [record.value for record in read_records(item.data, item.header)]
                    decoded = [decode_metadata(value) for value in values if value is not None]
                except (CorruptRecordError, ProtocolError):
                    found.unreadable += 1
                    continue
                yield from (record for record in decoded if record is not None)
        finally:
            os.close(fd)
