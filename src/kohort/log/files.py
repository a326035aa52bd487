"""Names of a log's files, and atomic writes of small files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from kohort.log.descriptors import open_file

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (INDEX, TIME_INDEX, TXN_INDEX, LOG)
"""Files of a segment. The log is last: after renames in this order, its name shows whether all are complete."""

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"

EPOCHS: Final = "leader-epoch-checkpoint"
METADATA: Final = "partition.metadata"


def file_name(offset: int, suffix: str) -> str:
    """A name such as "00000000000000000000.log"."""
    return f"{offset:020}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset in a file's name; None without one."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else None


def make_directory(path: Path) -> bool:
    """Creates a directory and its parents; returns False if it existed.

    Raises:
        OSError: it can't be created.
    """
    try:
        path.mkdir()
    except FileExistsError:
        return False
    except FileNotFoundError:
        path.mkdir(parents=True, exist_ok=True)
    return True


def write_at(fd: int, data: bytes | memoryview, position: int) -> None:
    """Writes all of `data`; a regular file takes less only when its disk is full.

    Raises:
        OSError: not everything is written.
    """
    written = os.pwrite(fd, data, position)
    while written < len(data):
        more = os.pwrite(fd, data[written:], position + written)
        if not more:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += more


def read_exactly(fd: int, size: int, position: int) -> bytes:
    """Reads `size` bytes.

    Raises:
        OSError: the file is shorter; it was truncated by something else.
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


def read_whole(path: Path) -> bytes:
    """Reads a file; raises OSError. Where descriptors are short, others' files are closed for it."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as stream:
        return stream.read()


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replaces a file: a crash leaves the old or the new one. With `sync`, the new one is on the disk on return."""
    temporary = path.with_name(f"{path.name}.tmp")
    fd = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
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
    """Syncs the names in a directory to the disk."""
    fd = open_file(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
