"""Compiles (message, version) into a function that encodes and one that decodes.

On first use of a function, the declaration is turned into Python source and compiled. Each function is compiled
separately: the compiler dominates start-up time, and most programs only read or only write a message. The source:

- Nested structs are inlined: there are loops over arrays, but no calls from struct to struct, and the declaration isn't
  used at run time.
- Consecutive fields of a fixed size are one `struct` call, which also reads the length of the next variable-size field.
- Valid input takes the fast path. Anything else raises one of a few plain exceptions; only then `trace` interprets the
  declaration step by step to find the invalid field and byte.

A slice past the end of the input is short without an error, so the fast path checks once, at the end, that it has
stopped at the end of the input. Every array element takes at least one byte, so no count, however large, makes a loop
longer than the input.

- A generator that reads or writes the same in slices is the same source with a `yield` after each element of an array.

`source_of` returns the generated source.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, Generic, TypeVar

from kohort.protocol.decoder import Decoder
from kohort.protocol.encoder import Encoder
from kohort.protocol.message_spec import MessageStruct
from kohort.protocol.primitives import Buffer

__all__ = ["Codec", "CodecTable", "source_of"]

M = TypeVar("M", bound=MessageStruct)

_EMITTERS: Final[dict[str, type[Encoder | Decoder]]] = {
    "decode": Decoder,
    "encode": Encoder,
    "encode_slices": Encoder,
    "read": Decoder,
    "read_slices": Decoder,
}


class Codec(Generic[M]):
    """Encoder and decoder of one message in one version, each compiled on first use.

    Attributes:
        encode: `encode(message) -> bytes`; `encode(message, join) -> join(pieces)`, where `pieces` is a list of bytes
            and, for records, of the message's buffers.
        decode: `decode(data) -> message`, where `data` is exactly the message.
        read: `read(data, pos) -> (message, end)`, where more may follow, such as a body after its header.
        read_slices: a generator that does what `read` does. It yields the number of elements that it has read since,
            or reads next, so that a large message can be put off, or given up, between two of them.
        encode_slices: a generator that does what `encode` does, and yields after each element of an array.
    """

    __slots__ = ("_cls", "_version", "decode", "encode", "encode_slices", "read", "read_slices")

    encode: Callable[..., Any]
    decode: Callable[[Buffer], M]
    read: Callable[[Buffer, int], tuple[M, int]]
    read_slices: Callable[[bytes, int], Generator[int, None, tuple[M, int]]]
    encode_slices: Callable[..., Generator[None, None, Any]]

    def __init__(self, cls: type[M], version: int) -> None:
        cls.__message__.check_version(version)
        self._cls, self._version = cls, version

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Compiles a function and stores it in its slot, so that this is called once for each."""
        emitter = _EMITTERS.get(name)
        if emitter is None:
            raise AttributeError(name)
        function = emitter(self._cls, self._version).compile(name)
        setattr(self, name, function)
        return function


class CodecTable(dict[int, Codec[Any]]):
    """The codecs of one message by version, each made on first use."""

    def __init__(self, cls: type[MessageStruct]) -> None:
        super().__init__()
        self.cls = cls

    def __missing__(self, version: int) -> Codec[Any]:
        made = self[version] = Codec(self.cls, version)
        return made


def source_of(cls: type[MessageStruct], version: int) -> str:
    """Returns the Python source that is generated for a message in a version."""
    encoder, decoder = Encoder(cls, version), Decoder(cls, version)
    return "\n\n".join((encoder.source("encode"), decoder.source("decode"), decoder.source("read")))
