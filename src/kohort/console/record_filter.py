"""Which records a page of records is searched for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kohort.console.record_decoding import Decoded
from kohort.console.record_ranges import ChoiceError

MOST_TEXT: Final = 1_000
"""Characters of what is searched for."""

_NAMES: Final = ("key", "key_is", "value", "field", "header")


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A field within a JSON value.

    Attributes:
        path: names of objects' fields, and places in lists.
        wanted: what it is, as text: `7`, `true`, `null`, `JFK`.
        equal: whether it has to be that, or anything else.
    """

    path: tuple[str, ...]
    wanted: str
    equal: bool

    def __call__(self, value: Any) -> bool:
        """Whether a value passes; one without the field doesn't."""
        for name in self.path:
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(value):
                value = value[int(name[:9])]
            else:
                return False
        return _is(value, self.wanted) is self.equal


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """What records have to have; "" and None ask for nothing.

    Attributes:
        key, value: a part of the key's or value's text, whatever the case; JSON is without spaces.
        key_is: the whole of the key's text.
        field: a test of a field of the value.
        header: a header's name, and its value, None for any.
    """

    key: str = ""
    key_is: str = ""
    value: str = ""
    field: FieldTest | None = None
    header: tuple[str, str | None] | None = None

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> RecordFilter:
        """What a page's parameters say.

        Raises:
            ChoiceError: a parameter makes no sense.
        """
        given = {name: fields.get(name, "").strip() for name in _NAMES}
        for name, text in given.items():
            if len(text) > MOST_TEXT:
                raise ChoiceError(f"{name} has {len(text):,} characters; {MOST_TEXT:,} are searched for at most")
        header = None
        if given["header"]:
            name, sign, wanted = given["header"].partition("=")
            header = name.strip(), wanted.strip() if sign else None
        return cls(
            given["key"].casefold(),
            given["key_is"],
            given["value"].casefold(),
            parse_field(given["field"]) if given["field"] else None,
            header,
        )

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.key or self.key_is or self.value or self.field or self.header)

    @property
    def decodes(self) -> bool:
        """Whether keys or values have to be decoded for it."""
        return bool(self.key or self.key_is or self.value or self.field)

    def __call__(self, key: Decoded, value: Decoded, headers: Iterable[tuple[str, bytes | None]]) -> bool:
        """Whether a record has it."""
        if self.key_is and key.text != self.key_is:
            return False
        if self.key and self.key not in key.text.casefold():
            return False
        if self.value and self.value not in value.text.casefold():
            return False
        if self.field is not None and not self.field(value.value):
            return False
        return self.has_header(headers)

    def has_header(self, headers: Iterable[tuple[str, bytes | None]]) -> bool:
        """Whether the header that is wanted is there."""
        if self.header is None:
            return True
        wanted, text = self.header
        return any(
            name == wanted and (text is None or (value or b"").decode(errors="replace") == text)
            for name, value in headers
        )


def parse_field(text: str) -> FieldTest:
    """A test as a person writes it: `a.b = 7`, `list.0.name != "x"`.

    Raises:
        ChoiceError: it's none.
    """
    if (sign := re.search("!?=", text)) is not None:
        names = tuple(each.strip() for each in text[: sign.start()].strip().split("."))
        if all(names):
            return FieldTest(names, text[sign.end() :].strip(), sign[0] == "=")
    raise ChoiceError(f"{text!r} tests no field; a.b = 7 and a.b != 7 do")


def _is(value: Any, wanted: str) -> bool:
    """Whether a value is what somebody wrote: text with quotation marks or without, anything else as in JSON."""
    if isinstance(value, str) and value == wanted:
        return True
    try:
        meant = msgspec.json.decode(wanted.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return (type(value) is type(meant) and value == meant) or (_numbers(value, meant) and value == meant)


def _numbers(*values: Any) -> bool:
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
