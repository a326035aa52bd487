"""The formats of records' values: bytes to columns and back.

    decoded = decoder("json", schema).decode(values)
    decoded.columns  # the rows that could be read, in order
    decoded.errors   # the others: (row, why)

Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kohort.spark.formats.codec import decoder, encoder
    from kohort.spark.formats.interfaces import Decoded, Decoder, Encoder, FormatError

__all__ = ["FORMATS", "Decoded", "Decoder", "Encoder", "FormatError", "decoder", "encoder"]

FORMATS: Final = ("json", "avro", "csv", "json_schema", "protobuf", "string", "raw")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "codec" if name in ("decoder", "encoder") else "interfaces"
    return getattr(import_module(f"{__name__}.{home}"), name)
