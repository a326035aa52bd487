"""Reads records in Spark's Python workers, for callers without an event loop.

Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kohort.spark.reading.errors import RangeError
    from kohort.spark.reading.reader import Range, RangeReader, shared

__all__ = ["Range", "RangeError", "RangeReader", "shared"]

_HOME: Final = {"Range": "reader", "RangeError": "errors", "RangeReader": "reader", "shared": "reader"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
