"""The transaction index: aborted transactions that ended in a segment, in Kafka's format (KIP-98)."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.descriptors import open_file
from kohort.log.files import read_whole, write_at

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """An aborted transaction.

    Attributes:
        producer_id: the producer.
        first_offset, last_offset: of its first record and of its marker.
        last_stable_offset: of the log, after the marker. Reading up to it needs no later entry.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Aborted transactions in the order of their markers. The file exists if there are any."""

    __slots__ = ("entries", "path")

    def __init__(self, path: Path, *, load: bool) -> None:
        self.path = path
        self.entries: list[AbortedTransaction] = []
        if load:
            try:
                data = read_whole(path)
            except FileNotFoundError:
                return
            size = len(data) - len(data) % _ENTRY.size
            self.entries = [AbortedTransaction(*fields) for _, *fields in _ENTRY.iter_unpack(data[:size])]

    def append(self, entry: AbortedTransaction) -> None:
        """Adds a transaction, when its marker is appended."""
        fd = open_file(self.path, os.O_WRONLY | os.O_CREAT)
        try:
            write_at(fd, _ENTRY.pack(_VERSION, *entry), len(self.entries) * _ENTRY.size)
        finally:
            os.close(fd)
        self.entries.append(entry)

    def reset(self) -> None:
        """Removes all entries, and the file."""
        self.entries.clear()
        self.path.unlink(missing_ok=True)
