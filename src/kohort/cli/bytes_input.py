"""Bytes as people hand them over: a file, standard input, or hex digits on the command line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kohort.cli.terminal import fail

__all__ = ["read_bytes", "read_text"]

_HEX_LINE = re.compile(rb"\A[0-9a-fA-F\s:]*\Z")


def read_bytes(source: str) -> bytes:
    """The bytes of a file, of standard input ("-"), or that `source` itself spells as hex digits.

    A file or input that holds nothing but hex digits, spaces and colons is taken as hex; anything else as it is.
    """
    if source == "-":
        return _plain_or_hex(sys.stdin.buffer.read(), "standard input")
    path = Path(source)
    try:
        if path.is_file():
            return _plain_or_hex(path.read_bytes(), source)
    except OSError as error:
        if not _HEX_LINE.match(source.encode()):
            fail(f"can't read {source}: {error.strerror}")
    if not _HEX_LINE.match(source.encode(errors="replace")):
        fail(f"{source!r} is neither a file nor hex digits; use - for standard input")
    return _from_hex(source.encode(), "the argument")


def _plain_or_hex(raw: bytes, name: str) -> bytes:
    return _from_hex(raw, name) if raw.strip() and _HEX_LINE.match(raw) else raw


def _from_hex(raw: bytes, name: str) -> bytes:
    digits = re.sub(rb"[\s:]", b"", raw).decode()
    if len(digits) % 2:
        fail(f"{name} has {len(digits)} hex digits, an odd number")
    return bytes.fromhex(digits)


def read_text(source: str) -> str:
    """The text of a file, or of standard input ("-")."""
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return raw.decode()
    except OSError as error:
        fail(f"can't read {source}: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{'standard input' if source == '-' else source} isn't UTF-8: byte {error.start} is wrong")
