"""What the bytes of a frame are: its size, the request or response header, and the message."""

from __future__ import annotations

from typing import NamedTuple

from kohort.protocol.message import Kind, Message
from kohort.protocol.messages import API_NAMES, api
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader

__all__ = ["FrameError", "Section", "frame_fault", "frame_size", "request_of", "sections"]


class FrameError(ValueError):
    """Bytes that are no frame, or not the one that was meant: says why."""


class Section(NamedTuple):
    """A part of a frame: "header" or "message", its declaration and version, and whether it is the last."""

    name: str
    message: type[Message]
    version: int
    last: bool


def frame_size(data: bytes) -> int:
    """How many bytes a frame says that follow its size.

    Raises:
        FrameError: the size isn't there.
    """
    if len(data) < 4:
        raise FrameError(f"the size of the frame needs 4 bytes, {_there(len(data))}")
    return int.from_bytes(data[:4], "big")


def frame_fault(size: int, actual: int) -> str | None:
    """What is wrong with a frame that says `size` and has `actual` bytes after it; None for nothing."""
    if size == actual:
        return None
    what = "missing" if actual < size else "left over"
    return f"the frame says that {size} bytes follow, but {actual} do: {abs(size - actual)} {what}"


def request_of(
    data: bytes, message: type[Message] | None = None, version: int | None = None
) -> tuple[type[Message], int]:
    """Message and version that a request's header names.

    Args:
        data: what begins with the header.
        message, version: what it has to name; None for any.

    Raises:
        FrameError: the header isn't there, names none that is known, or another one.
    """
    if len(data) < 4:
        raise FrameError(f"the header needs 8 bytes, {_there(len(data))}")
    key, number = int.from_bytes(data[:2], "big", signed=True), int.from_bytes(data[2:4], "big", signed=True)
    name = API_NAMES.get(key)
    if name is None:
        raise FrameError(f"the header names API {key}, which is none")
    if message is not None and message.__message__.key != key:
        raise FrameError(f"the header says {name} (API {key}), not {message.__message__.api}")
    if version is not None and version != number:
        raise FrameError(f"the header says version {number}, not {version}")
    found = api(key).request
    versions = found.__message__.versions
    if number not in versions:
        raise FrameError(f"the header asks for {name} v{number}; known are {versions[0]} to {versions[-1]}")
    return found, number


def sections(message: type[Message], version: int, *, header: bool) -> list[Section]:
    """The sections of the bytes, in order."""
    own = Section("message", message, version, True)
    if not header:
        return [own]
    spec = message.__message__
    before: type[Message] = RequestHeader if spec.kind is Kind.REQUEST else ResponseHeader
    return [Section("header", before, spec.header_version(version), False), own]


def _there(count: int) -> str:
    return "1 is there" if count == 1 else f"{count} are there"
