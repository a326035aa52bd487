"""What is lost or wrong in a log: its name, on a line that an operator understands, and the offsets it cost.

Offsets that are lost aren't given to other records: the log goes on after them. They are kept in a file of the
partition's directory, `known-losses`, so that a loss is told once and a later start doesn't take it for a new one.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.checkpoints import parse_checkpoint, render_checkpoint
from kohort.log.files import write_atomically
from kohort.plurals import several

_log: Final = logging.getLogger("kohort.log")

KNOWN_LOSSES: Final = "known-losses"


class DamageKind(enum.Enum):
    """What happened to a log. The value is the label of its metric."""

    TORN_END = "torn_end"
    """The last batches weren't written whole, as after a crash. They weren't flushed."""
    DAMAGED_BATCH = "damaged_batch"
    """A batch isn't what was written: its bytes have changed, or are gone."""
    MISSING_SEGMENT = "missing_segment"
    """A file with records isn't there."""
    WRONG_INDEX = "wrong_index"
    """An index doesn't agree with the log. Nothing is lost: it is made anew."""


class Range(NamedTuple):
    """Offsets from `first` on, before `end`."""

    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.first}" if self.end - self.first == 1 else f"{self.first} to {self.end - 1}"


class Aside(NamedTuple):
    """Whole batches that were set aside, and the file that they are in."""

    file: str
    offsets: Range
    batches: int


@dataclass(frozen=True, slots=True)
class Damage:
    """One finding.

    Attributes:
        directory: of the partition.
        reason: what is wrong, and where; a clause.
        lost: the offsets of the records that can't be read any more. Compaction may have removed some of these before.
        size: bytes that are lost.
        aside: batches after the damage that are whole.
        to_mend: whether readers stop there until the log is repaired.
    """

    kind: DamageKind
    directory: Path
    reason: str
    lost: tuple[Range, ...] = ()
    size: int = 0
    aside: tuple[Aside, ...] = ()
    to_mend: bool = False

    @property
    def records(self) -> int:
        """How many records are lost at most."""
        return sum(gone.end - gone.first for gone in self.lost)

    def __str__(self) -> str:
        name = self.directory.name
        if self.kind is DamageKind.WRONG_INDEX:
            return f"{name}: {self.reason}. The index is made anew from the log."
        size = f", {several(self.size, 'byte')}" if self.size else ""
        if self.lost:
            many = several(self.records, "record")
            if self.records > 1:
                many = f"at most {many}"
            offsets = ", ".join(map(str, self.lost))
            verb = f"offset {offsets} is" if self.records == 1 else f"offsets {offsets} are"
            text = f"{name}: {verb} lost ({many}{size}): {self.reason}."
        else:
            text = f"{name}: {several(self.size, 'byte')} {'is' if self.size == 1 else 'are'} lost: {self.reason}."
        if self.aside:
            count = sum(part.batches for part in self.aside)
            files = self.aside[0].file
            if len(self.aside) > 1:
                files += f" to {self.aside[-1].file} ({several(len(self.aside), 'file')})"
            span = Range(self.aside[0].offsets.first, self.aside[-1].offsets.end)
            batches = several(count, "whole batch", "es")
            text += (
                f" {batches} after that, offsets {span}, can't be read for now and are set aside in {files}. "
                f"To bring them back, stop the server and run: {repair_command(self.directory)}"
            )
        elif self.to_mend:
            text += " Readers get CORRUPT_MESSAGE there. To let them past it, stop the server and run: "
            text += repair_command(self.directory)
        return text


Report = Callable[[Damage], None]
"""Takes a finding; may be called in any thread that uses a log."""


def tell(damage: Damage) -> None:
    """Logs a finding: as an error where records are lost that were safe, else as a warning."""
    harmless = damage.kind in (DamageKind.TORN_END, DamageKind.WRONG_INDEX)
    _log.log(logging.WARNING if harmless else logging.ERROR, "%s", damage)


def repair_command(directory: Path) -> str:
    """The command that mends a partition's directory."""
    return f"kohort log check {directory.parent} --partition {directory.name} --repair"


def known_losses(directory: Path) -> list[Range]:
    """The offsets that a partition is known to have lost, in order; those of a file that is damaged aren't known."""
    try:
        rows = parse_checkpoint((directory / KNOWN_LOSSES).read_text())
        return sorted(Range(int(first), int(end)) for first, end in rows)
    except (FileNotFoundError, ValueError):
        return []


def note_losses(directory: Path, ranges: Iterable[Range]) -> None:
    """Adds to what a partition is known to have lost.

    Raises:
        OSError: it can't be written.
    """
    merged: list[Range] = []
    for new in sorted([*known_losses(directory), *ranges]):
        if merged and new.first <= merged[-1].end:
            merged[-1] = Range(merged[-1].first, max(merged[-1].end, new.end))
        elif new.first < new.end:
            merged.append(new)
    write_atomically(directory / KNOWN_LOSSES, render_checkpoint((str(first), str(end)) for first, end in merged))


def unknown(gap: Range, known: Iterable[Range]) -> list[Range]:
    """What is left of a gap without the losses that are known, which are in order."""
    left, first = [], gap.first
    for loss in known:
        if loss.end <= first or loss.first >= gap.end:
            continue
        if loss.first > first:
            left.append(Range(first, loss.first))
        first = max(first, loss.end)
    if first < gap.end:
        left.append(Range(first, gap.end))
    return left
