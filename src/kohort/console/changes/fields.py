"""What a form says, field by field. Browsers send lines with CR LF; here they end with LF."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.console.record_ranges import ChoiceError

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_MOST_PARTITIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a form.

    Raises, of all methods: ChoiceError, which says what is wanted, if a field makes no sense.

    Attributes:
        values: by name, as they came; a field may have several.
    """

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def raw(self, name: str) -> str:
        """A field as it was filled in; "" if it isn't there."""
        return next(iter(self.several(name)), "")

    def text(self, name: str) -> str:
        """A field without space around it."""
        return self.raw(name).strip()

    def several(self, name: str) -> tuple[str, ...]:
        """All values of a field."""
        return tuple(value.replace("\r\n", "\n") for value in self.values.get(name, ()))

    def needed(self, name: str, what: str) -> str:
        """A field that must be filled in, as it was: a name may begin or end with a space."""
        if not self.raw(name):
            raise ChoiceError(f"{what} is missing")
        return self.raw(name)

    def whole(self, name: str, what: str, *, least: int = 0) -> int | None:
        """A whole number; None if the field is empty."""
        text = self.text(name)
        if not text:
            return None
        if not _WHOLE.fullmatch(text):
            raise ChoiceError(f"{what} is a whole number, not {text!r}")
        if int(text) < least:
            raise ChoiceError(f"{what} is {least} or more, not {text}")
        return int(text)

    def lines(self, name: str) -> list[str]:
        """The lines of a field that aren't empty, without space around them."""
        return [line.strip() for line in self.raw(name).split("\n") if line.strip()]

    def pairs(self, name: str, what: str) -> list[tuple[str, str]]:
        """Lines of key=value, without space around either."""
        found = []
        for line in self.lines(name):
            key, equals, value = line.partition("=")
            if not equals or not key.strip():
                raise ChoiceError(f"{what} are lines of key=value, not {line!r}")
            found.append((key.strip(), value.strip()))
        return found

    def partitions(self, name: str) -> list[int] | None:
        """Numbers and ranges, such as 0,3-5; None if the field is empty, which means all."""
        text = self.text(name)
        if not text:
            return None
        found: set[int] = set()
        size = 0
        for part in text.split(","):
            match = _RANGE.fullmatch(part.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if last < first or last - first >= _MOST_PARTITIONS:
                raise ChoiceError(f"partitions are numbers and ranges, such as 0,3-5, not {part.strip()!r}")
            size += last - first + 1  # a number that is repeated takes time each time
            if size > _MOST_PARTITIONS:
                raise ChoiceError(f"that is more than {_MOST_PARTITIONS:,} partitions")
            found.update(range(first, last + 1))
        return sorted(found)
