"""The source of records: a file, or standard input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kohort.cli.data.errors import DataError
from kohort.cli.data.pipes import Interrupter, read_some
from kohort.cli.terminal import printable

BLOCK: Final = 1 << 20
"""Bytes that are read at a time."""

LONGEST_LINE: Final = 128 << 20


class Source:
    """Bytes to read, one block after another.

    Attributes:
        size: bytes in all; None for a pipe or a terminal.
        position: bytes that have been read.
    """

    def __init__(self, name: str, fd: int, interrupter: Interrupter) -> None:
        self.name = name
        self.fd = fd
        self.size = os.fstat(fd).st_size if stat.S_ISREG(os.fstat(fd).st_mode) else None
        self.position = 0
        self.interactive = os.isatty(fd)
        self._interrupter = interrupter

    def read(self, size: int = BLOCK) -> bytes:
        """The next bytes, as soon as there are any; empty at the end.

        Raises:
            DataError: they can't be read.
            Interrupted: `Interrupter.stop` was called.
        """
        try:
            data = read_some(self.fd, size, self._interrupter)
        except OSError as error:
            raise DataError(f"can't read {self.name}: {error.strerror or error}") from None
        self.position += len(data)
        return data

    def line_blocks(self) -> Iterator[tuple[int, bytes]]:
        """Blocks of whole lines: the number of the first line, and the lines without the last newline.

        Raises:
            DataError: a line is too long, or can't be read.
        """
        begun: list[bytes] = []
        line, size = 1, 0
        while data := self.read():
            cut = data.rfind(b"\n")
            size += len(data)
            if cut >= 0:
                block = b"".join([*begun, data[:cut]])
                yield line, block
                line += block.count(b"\n") + 1
                begun, data = [], data[cut + 1 :]
                size = len(data)
            elif size > LONGEST_LINE:
                raise DataError(f"{self.name}, line {line}: longer than {LONGEST_LINE >> 20} MiB")
            if data:
                begun.append(data)
        if begun:
            yield line, b"".join(begun)


@contextmanager
def open_source(path: str, interrupter: Interrupter) -> Iterator[Source]:
    """A file, or standard input ("-").

    Raises:
        DataError: it can't be opened.
    """
    name = "standard input" if path == "-" else printable(path)
    try:
        if path == "-":
            if sys.stdin is None:
                raise DataError("standard input is closed")
            yield Source(name, sys.stdin.fileno(), interrupter)
            return
        fd = os.open(path, os.O_RDONLY)
    except (OSError, ValueError) as error:
        raise DataError(f"can't read {name}: {getattr(error, 'strerror', None) or error}") from None
    try:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise DataError(f"{name} is a directory")
        yield Source(name, fd, interrupter)
    finally:
        os.close(fd)
