"""Names of a log's files, and writing small files so that a crash leaves the old or the new one."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

__all__ = [
    "CLEANED", "DELETED", "EPOCHS", "INDEX", "LOG", "METADATA", "SEGMENT_SUFFIXES", "SNAPSHOT", "SWAP", "TIME_INDEX",
    "TXN_INDEX", "file_name", "fsync_directory", "make_directory", "offset_of", "read_exactly", "write_at",
    "write_atomically",
]  # fmt: skip

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (INDEX, TIME_INDEX, TXN_INDEX, LOG)
"""Files of a segment. The log comes last: who renames in this order knows by the log whether all are there."""

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"

EPOCHS: Final = "leader-epoch-checkpoint"
METADATA: Final = "partition.metadata"


def file_name(offset: int, suffix: str) -> str:
    """Such as "00000000000000000000.log"."""
    return f"{offset:020}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset that a file is named by, None if it isn't."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else None


def make_directory(path: Path) -> bool:
    """Make a directory, and those above it; whether it wasn't there before.

    Raises:
        OSError: it can't be made.
    """
    try:
        path.mkdir()
    except FileExistsError:
        return False
    except FileNotFoundError:
        path.mkdir(parents=True, exist_ok=True)
    return True


def write_at(fd: int, data: bytes | memoryview, position: int) -> None:
    """Write all of `data`; a regular file takes less only when its disk is full.

    Raises:
        OSError: it isn't all written.
    """
    written = os.pwrite(fd, data, position)
    while written < len(data):
        more = os.pwrite(fd, data[written:], position + written)
        if not more:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += more


def read_exactly(fd: int, size: int, position: int) -> bytes:
    """`size` bytes of a file that has them.

    Raises:
        OSError: it hasn't; somebody else has cut it.
    """
    data = os.pread(fd, size, position)
    while len(data) < size:
        more = os.pread(fd, size - len(data), position + len(data))
        if not more:
            raise OSError(
                errno.EIO, f"the file ends at byte {position + len(data)}, {size} were expected at {position}"
            )
        data += more
    return data


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file under another name and put it in its place; with `sync`, it is on the disk then."""
    temporary = path.with_name(f"{path.name}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_at(fd, data, 0)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    if sync:
        fsync_directory(path.parent)


def fsync_directory(directory: Path) -> None:
    """Make the names in a directory last."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
