"""Bytes from a file, from standard input, or as hex digits on the command line."""

from __future__ import annotations

import codecs
import errno
import re
import sys
from pathlib import Path
from typing import Final

from kohort.cli.terminal import fail, printable

_HEX: Final = re.compile(rb"\A\s*(?:0[xX])?([0-9a-fA-F\s:]*)\Z")

_NO_SUCH_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of hex digits that are tried as a path."""


def read_bytes(source: str) -> bytes:
    """The bytes of a file, of standard input ("-"), or of the hex digits in `source` itself.

    A file or input with nothing but hex digits, spaces and colons is taken as hex; anything else as it is.
    """
    if source == "-" or _exists(source):
        return _plain_or_hex(_raw(source), input_name(source))
    digits = _hex_digits(source.encode(errors="replace"))
    if digits is None:
        fail(f"{source!r} is neither a file nor hex digits; use - for standard input")
    return _from_hex(digits, "the argument", 2)


def read_text(source: str) -> str:
    """The text of a file, or of standard input ("-")."""
    try:
        return _raw(source).removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        fail(f"{input_name(source)} isn't UTF-8: byte {error.start} is wrong", 1)


def input_name(source: str) -> str:
    """The name of the input in error messages."""
    return "standard input" if source == "-" else printable(source)


def _raw(source: str) -> bytes:
    name = input_name(source)
    if not source:
        fail("the name of the file is empty")
    try:
        if source != "-":
            return Path(source).read_bytes()  # a pipe or a device as well
        if sys.stdin is None:
            fail("standard input is closed", 1)
        return sys.stdin.buffer.read()
    except IsADirectoryError:
        fail(f"{name} is a directory")
    except OSError as error:
        fail(f"can't read {name}: {error.strerror or error}")
    except ValueError as error:  # a null character in the name
        fail(f"can't read {name}: {error}")


def _exists(source: str) -> bool:
    """Whether `source` is the path of anything, readable or not."""
    if not source:
        fail("the argument is empty: a file, - for standard input, or hex digits wanted")
    try:
        Path(source).lstat()
    except OSError as error:
        return error.errno not in _NO_SUCH_FILE
    except ValueError:
        return False
    return True


def _plain_or_hex(raw: bytes, name: str) -> bytes:
    digits = _hex_digits(raw.removeprefix(codecs.BOM_UTF8))
    return _from_hex(digits, name, 1) if digits else raw


def _hex_digits(text: bytes) -> bytes | None:
    """The hex digits that `text` consists of, or None if there is anything else."""
    match = _HEX.match(text)
    return re.sub(rb"[\s:]", b"", match[1]) if match else None


def _from_hex(digits: bytes, name: str, code: int) -> bytes:
    if len(digits) % 2:
        fail(f"{name} has {len(digits)} hex digits, an odd number", code)
    return bytes.fromhex(digits.decode())
