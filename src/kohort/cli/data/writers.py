"""Writers of records: lines to a descriptor."""

from __future__ import annotations

from typing import Any, Protocol

from kohort.cli.data.pipes import Interrupter, abandoned, write_all
from kohort.cli.data.record_path import Render


class Writer(Protocol):
    """Takes polled records. Its methods wait for the disk.

    Attributes:
        readable: whether what was written can be read at once; else only after `close`.
        written: bytes so far.
    """

    readable: bool
    written: int

    def write(self, records: Any) -> None:
        """Writes all of the records, or raises OSError or Interrupted."""

    def abandoned(self) -> bool:
        """Whether the reader of the output has closed it."""

    def close(self) -> None:
        """Completes the output."""


class LineWriter:
    """Writes the lines that `render` makes of records, at once."""

    readable = True

    def __init__(self, fd: int, render: Render, interrupter: Interrupter) -> None:
        self.written = 0
        self._fd = fd
        self._render = render
        self._interrupter = interrupter

    def write(self, records: Any) -> None:
        data = self._render(records)
        write_all(self._fd, data, self._interrupter)
        self.written += len(data)

    def abandoned(self) -> bool:
        """Whether the pipe's reader has closed it, such as `| head`."""
        return abandoned(self._fd)

    def close(self) -> None:
        """Does nothing; the descriptor is its owner's."""
