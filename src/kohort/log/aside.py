"""Sets whole batches aside that come after a damage.

They are in files of their own beside the segments, named by their first offset: `00000000000000001250.log.aside`. Such
a file is a segment's log: renamed, it is one again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.damage import Aside, Range
from kohort.log.descriptors import open_file
from kohort.log.files import LOG, file_name, fsync_directory, read_exactly, write_at
from kohort.log.salvage import Stretch, stretches
from kohort.log.segment import Segment

ASIDE: Final = ".aside"

_CHUNK: Final = 1 << 20


class Rest(NamedTuple):
    """What was found after a damage.

    Attributes:
        aside: the whole batches, as they were set aside.
        lost: the offsets between these.
        size: bytes that aren't in whole batches.
        end: the offset after the last whole batch.
    """

    aside: tuple[Aside, ...]
    lost: tuple[Range, ...]
    size: int
    end: int


def asides(directory: Path) -> list[str]:
    """The names of the files in a partition's directory that have batches set aside, by their first offsets."""
    return sorted(path.name for path in directory.glob(f"*{LOG}{ASIDE}*") if path.suffix != ".tmp")


def set_aside(directory: Path, segments: Sequence[Segment], position: int, offset: int, limit_of_last: int) -> Rest:
    """Copies the whole batches after a position of the first of `segments`, and those of the others, into files beside.

    The segments stay as they are. The files are on the disk on return.

    Args:
        offset: the end of the batches before the position.
        limit_of_last: all offsets of the last segment are below it.

    Raises:
        OSError: a file can't be read or written.
    """
    aside, lost, size = [], [], 0
    for number, segment in enumerate(segments):
        start = 0 if number else position
        size += segment.size - start
        limit = segments[number + 1].base_offset if number + 1 < len(segments) else limit_of_last
        base = segment.base_offset
        for found in stretches(segment.fd, start, segment.size, base_offset=base, least=offset, limit=limit):
            name = _set_aside(segment, found)
            aside.append(Aside(name, found.offsets, found.batches))
            size -= found.size
            if found.offsets.first > offset:
                lost.append(Range(offset, found.offsets.first))
            offset = found.offsets.end
        if number:
            segment.release()
    if aside:
        fsync_directory(directory)
    return Rest(tuple(aside), tuple(lost), size, offset)


def _set_aside(segment: Segment, found: Stretch) -> str:
    """Sets a stretch aside; returns the file's name. A whole segment isn't copied, if the file system has links."""
    directory = segment.directory
    name = base = file_name(found.offsets.first, LOG + ASIDE)
    number = 0
    # A crash may have come between this and what follows: then the same is there already.
    while (directory / name).exists() and (directory / name).stat().st_size != found.size:
        number += 1
        name = f"{base}.{number}"
    if (directory / name).exists():
        return name
    if found.size == segment.size:
        with suppress(OSError):
            (directory / name).hardlink_to(segment.path(LOG))
            return name
    copy_out(directory, segment.fd, found, name)
    return name


def copy_out(directory: Path, fd: int, found: Stretch, name: str) -> None:
    """Copies a stretch of a segment's log to a file, which is on the disk on return.

    Raises:
        OSError: it can't be read or written; there is no such file then.
    """
    copy = open_file(directory / f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for start in range(0, found.size, _CHUNK):
            piece = read_exactly(fd, min(_CHUNK, found.size - start), found.position + start)
            write_at(copy, piece, start)
        os.fsync(copy)
    finally:
        os.close(copy)
    (directory / f"{name}.tmp").replace(directory / name)
