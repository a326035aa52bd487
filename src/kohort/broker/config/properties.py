"""Parses Java's .properties files, such as Kafka's server.properties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_NEWLINE: Final = re.compile(r"\r\n|\n|\r")
_SPACE: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*)?")
_ESCAPE: Final = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_HEX: Final = re.compile(r"u[0-9a-fA-F]{4}")
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "": ""}


class Property(NamedTuple):
    """A key, its value, and the number of its first line, from 1."""

    key: str
    value: str
    line: int


def decode(raw: bytes) -> str:
    """Decodes a file: as UTF-8, or else as Latin-1, as Java does."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def parse(text: str) -> Iterator[Property]:
    r"""Yields the properties of a text in order; keys may repeat.

    Like `java.util.Properties`: `#` and `!` start comments, the first unescaped `=`, `:` or space ends a key, a
    backslash at the end of a line continues it on the next, without indentation; escapes are \t \n \r \f \uXXXX.

    Raises:
        ValueError: an escape \u without four hex digits; the message names the line.
    """
    for line, number in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None  # it matches the empty text as well
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        yield Property(_unescaped(key[1], number), _unescaped(line[separator.end() :], number), number)


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yields lines without empty ones and comments, continuations joined, with the number of the first line."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(_NEWLINE.split(text), 1):
        line = line.lstrip(_SPACE)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if continued else line)
        if not continued:
            yield "".join(parts), first
            parts = []
    if parts:
        yield "".join(parts), first


def _unescaped(text: str, line: int) -> str:
    def char(match: re.Match[str]) -> str:
        code = match[1]
        if code[:1] != "u":
            return _CONTROL.get(code, code)
        if not _HEX.fullmatch(code):
            raise ValueError(f"line {line}: \\u needs four hex digits")
        return chr(int(code[1:], 16))

    joined = _ESCAPE.sub(char, text) if "\\" in text else text
    # Java's characters are UTF-16: two escapes may make one character.
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if "\\u" in text else joined
