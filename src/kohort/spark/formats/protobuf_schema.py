"""Schemas of Protocol Buffers: compiled from a registry's text, by protoc, and the messages that are in them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final

from kohort.extras import PROTOBUF, require
from kohort.spark.formats.interfaces import FormatError

_NAME: Final = "schema.proto"
_SECONDS: Final = 60
_MAX_INDEXES: Final = 64
_MAX_NAME: Final = 500
_MAX_PART: Final = 200
"""Of a file's name, in characters, and of a piece of it, in bytes: file systems take no more than 255 of these."""


class ProtobufSchema:
    """A compiled schema.

    Attributes:
        file: its descriptor.
    """

    def __init__(self, text: str, references: tuple[tuple[str, str], ...] = ()) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError

        made = _compiled(text, references)
        pool = descriptor_pool.DescriptorPool()
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(made)
            for each in files.file:
                pool.Add(each)
            self.file = pool.FindFileByName(_NAME)
        except (DecodeError, KeyError, TypeError) as error:  # protoc may be newer, and nests deeper
            raise FormatError(f"no schema of Protocol Buffers that the library takes: {str(error)[:500]}") from None
        self._pool = pool
        self._messages = next(each for each in files.file if each.name == _NAME)

    def message(self, indexes: Sequence[int] = (0,)) -> Any:
        """The descriptor of a message, by its place among those of the file, and of the message around it.

        Raises:
            FormatError: there is none at that place.
        """
        messages, names = self._messages.message_type, [self._messages.package] if self._messages.package else []
        for index in indexes:
            if not 0 <= index < len(messages):
                raise FormatError(f"the schema has no message {'.'.join(map(str, indexes))}")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))


@lru_cache(maxsize=256)
def compiled(text: str, references: tuple[tuple[str, str], ...] = ()) -> ProtobufSchema:
    """A schema of a .proto's text.

    Args:
        references: the files that it imports: (name, text). Google's well-known types are there anyway.

    Raises:
        FormatError: it is none; says what protoc says.
        MissingExtraError: `kohort[protobuf]` isn't installed.
    """
    return ProtobufSchema(text, references)


def message_class(descriptor: Any) -> Any:
    """The class of a message's values."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(descriptor)


def read_indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """A message's indexes before it, and where it begins.

    Raises:
        ValueError: they are cut off, or absurd.
    """
    count, at = _zigzag(value, 0)
    if not 0 <= count <= _MAX_INDEXES:
        raise ValueError(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(value) and shift < 35:
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise ValueError("its message indexes are cut off")


def _compiled(text: str, references: tuple[tuple[str, str], ...]) -> bytes:
    """A FileDescriptorSet. protoc runs as a process of its own, so that what it complains of can be told.

    Names and texts come from whoever may register a schema: they are checked before anything is written, and Python
    looks for no module where the files are (`-P`, and a folder without any of them to run in).
    """
    require("protobuf", 'format="protobuf"', PROTOBUF)
    files = _checked_files(text, references)
    with tempfile.TemporaryDirectory(prefix="kohort-protobuf-") as made:
        top = Path(made).resolve()
        imports, empty, target = top / "imports", top / "empty", top / "descriptors"
        empty.mkdir()
        for name, content in files.items():
            path = imports / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        command = [
            sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{imports}", f"--descriptor_set_out={target}",
            "--include_imports", _NAME,
        ]  # fmt: skip
        try:
            done = subprocess.run(command, cwd=empty, capture_output=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise FormatError(f"no schema of Protocol Buffers: protoc takes more than {_SECONDS} s for it") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").splitlines()
            lines = [line.removeprefix(f"{imports}/") for line in said]
            wrong = [line for line in lines if line.partition(":")[0].endswith(".proto")] or lines
            raise FormatError(f"no schema of Protocol Buffers: {'; '.join(wrong)[:500]}")
        return target.read_bytes()


def _checked_files(text: str, references: tuple[tuple[str, str], ...]) -> dict[str, bytes]:
    """What protoc reads, by name. Raises FormatError: a name that no file of its own can have, or no Unicode."""
    files: dict[str, bytes] = {}
    for name, content in (*references, (_NAME, text)):
        if not _can_be_file(name):
            raise FormatError(f"the schema imports {name[:200]!r}, which is no name of a .proto file")
        if name in files:
            raise FormatError(f"the schema imports {name!r}, which is another file's name, too")
        try:
            files[name] = content.encode()
        except UnicodeEncodeError:
            raise FormatError(f"{name}: its text is no Unicode") from None
    for name in files:
        if clash := next((str(each) for each in PurePosixPath(name).parents if str(each) in files), None):
            raise FormatError(f"the schema imports {name!r} and {clash!r}: a file can't be a folder, too")
    return files


def _can_be_file(name: str) -> bool:
    parts = name.split("/")
    return (
        name.endswith(".proto")
        and name.isprintable()
        and "\\" not in name
        and len(name) <= _MAX_NAME
        and not any(part in ("", ".", "..") or len(part.encode(errors="replace")) > _MAX_PART for part in parts)
    )
