"""Declarations of configuration keys: name, type, default, bounds, parsing. Like Kafka's `ConfigDef`."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

MAX_LONG: Final = 2**63 - 1

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed value; None without one."""


class Type(enum.IntEnum):
    """Types of values, with Kafka's numbers."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = Type


class Change(enum.Enum):
    """Whether a value can be changed at run time: Kafka's dynamic update modes."""

    NEVER = "read-only"
    CLUSTER = "cluster-wide"
    BROKER = "per-broker"


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_REAL: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LIST: Final = re.compile(r"\s*,\s*")
_BITS: Final = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_TYPE_NAMES: Final = {
    Type.BOOLEAN: "true or false", Type.SHORT: "a 16-bit integer", Type.INT: "a 32-bit integer",
    Type.LONG: "a 64-bit integer", Type.DOUBLE: "a number",
}  # fmt: skip


class Key(NamedTuple):
    """A configuration key.

    Attributes:
        doc: a sentence of documentation.
        low, high: inclusive bounds of a number.
        valid: valid texts, or elements of a list; empty if all are.
        check: returns what is wrong with a value, or None.
        change: whether it can be changed at run time.
        synonyms: keys whose value is used if this key isn't set, first one first, each with a factor for its value (ms
            in an hour, say).
        internal: whether it isn't listed to clients.
    """

    name: str
    type: Type
    default: Value
    doc: str
    low: int | float | None = None
    high: int | float | None = None
    valid: tuple[str, ...] = ()
    check: Callable[[Value], str | None] | None = None
    change: Change = Change.NEVER
    synonyms: tuple[tuple[str, int], ...] = ()
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is Type.PASSWORD

    def parse(self, text: str) -> Value:
        """Parses and validates a value.

        Raises:
            ValueError: the text is no value of this key; the message says why, without the key's name.
        """
        value = self._parse_type(text.strip())
        if self.low is not None and isinstance(value, (int, float)) and value < self.low:
            raise ValueError(f"at least {show(self.low)} is needed")
        if self.high is not None and isinstance(value, (int, float)) and value > self.high:
            raise ValueError(f"at most {show(self.high)} is possible")
        if self.valid:
            wrong = [part for part in (value if isinstance(value, tuple) else (value,)) if part not in self.valid]
            if wrong:
                raise ValueError(f"{wrong[0]!r} is none of {', '.join(self.valid)}")
        problem = self.check(value) if self.check is not None else None
        if problem:
            raise ValueError(problem)
        return value

    def _parse_type(self, text: str) -> Value:
        match self.type:
            case Type.BOOLEAN if text.lower() in ("true", "false"):
                return text.lower() == "true"
            case Type.SHORT | Type.INT | Type.LONG if _INTEGER.fullmatch(text):
                limit = 1 << _BITS[self.type] - 1
                if len(text) <= 20 and -limit <= int(text) < limit:  # Python is slow with thousands of digits
                    return int(text)
            case Type.DOUBLE if _REAL.fullmatch(text):
                return float(text)
            case Type.LIST:
                return tuple(_LIST.split(text)) if text else ()
            case Type.STRING | Type.CLASS | Type.PASSWORD:
                return text
        raise ValueError(f"{_TYPE_NAMES[self.type]} is needed")


def show(value: Value) -> str | None:
    """Formats a value as Kafka does; None for None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value).replace("e+", "E")
    return ",".join(value) if isinstance(value, tuple) else str(value)


def keys_by_name(*keys: Iterable[Key]) -> dict[str, Key]:
    return {key.name: key for group in keys for key in group}
