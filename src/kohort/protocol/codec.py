"""Compiles (message, version) into a function that encodes and one that decodes.

A declaration is turned into Python source on first use, each function by itself, and run from then on: most of a
program's start-up is spent in the compiler, and nearly every program only reads a message, or only writes it. What the
source looks like:

- Nested structs are written out in place: there are loops over arrays, but no calls from struct to struct, and no
  look at the declaration at run time.
- Consecutive fields of a fixed size are one `struct` call, and the length that opens the next field of a varying
  size is read by the same call.
- Good input takes the straight path. Anything else ends in one of a few plain exceptions; only then `trace`
  interprets the declaration step by step to say which field, at which byte, is wrong.

A slice past the end of the input comes out short without an error, so the straight path checks once, at the end,
that it stopped where the input does. Until then every array element costs at least one byte that must be there,
so no count, however absurd, makes the loop longer than the input.

`source_of` shows the code that was made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kohort.protocol.decoder import Decoder
from kohort.protocol.encoder import Encoder
from kohort.protocol.primitives import Buffer

if TYPE_CHECKING:
    from kohort.protocol.message import Message

__all__ = ["Codec", "CodecTable", "source_of"]

M = TypeVar("M", bound="Message")


class Codec(Generic[M]):
    """Encoder and decoder of one message in one version, each compiled when it is first asked for.

    Attributes:
        encode: `encode(message) -> bytes`; `encode(message, join) -> join(pieces)`, where `pieces` is a list of bytes
            and, for records, of whatever buffers the message has.
        decode: `decode(data) -> message`, where `data` holds the message and nothing else.
        read: `read(data, pos) -> (message, end)`, where more may follow, such as a body after its header.
    """

    __slots__ = ("_cls", "_version", "decode", "encode", "read")

    encode: Callable[..., Any]
    decode: Callable[[Buffer], M]
    read: Callable[[Buffer, int], tuple[M, int]]

    def __init__(self, cls: type[M], version: int) -> None:
        cls.__message__.check_version(version)
        self._cls, self._version = cls, version

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Compile a function; it lies in its slot from then on, and this isn't called for it any more."""
        if name not in ("encode", "decode", "read"):
            raise AttributeError(name)
        emitter = Encoder if name == "encode" else Decoder
        function = emitter(self._cls, self._version).compile(name)
        setattr(self, name, function)
        return function


class CodecTable(dict[int, Codec[Any]]):
    """The codecs of one message by version, each made when it is first asked for."""

    def __init__(self, cls: type[Message]) -> None:
        super().__init__()
        self.cls = cls

    def __missing__(self, version: int) -> Codec[Any]:
        made = self[version] = Codec(self.cls, version)
        return made


def source_of(cls: type[Message], version: int) -> str:
    """The Python source that the compiler makes for a message in a version, for reading."""
    encoder, decoder = Encoder(cls, version), Decoder(cls, version)
    return "\n\n".join((encoder.source("encode"), decoder.source("decode"), decoder.source("read")))
