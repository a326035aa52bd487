"""`kohort.protocol.records.columns`, loaded in a thread: numba takes most of a second, too long for a loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import ModuleType

__all__ = ["columns_if_loaded", "columns_loaded", "load_columns"]

_lock = threading.Lock()
_module: Future[ModuleType] | None = None


def load_columns() -> Future[ModuleType]:
    """Begin to load the module and its compiled code, unless that was done."""
    global _module
    with _lock:
        if _module is None:
            _module = Future()
            threading.Thread(target=_load, args=(_module,), name="kohort-load-columns").start()
        return _module


def columns_if_loaded() -> ModuleType | None:
    """The module, if it's there."""
    if _module is None or not _module.done() or _module.exception() is not None:
        return None
    return _module.result()


async def columns_loaded() -> ModuleType:
    """The module, as soon as it's there."""
    # Shielded, or who no longer waits would cancel it for the others.
    return await asyncio.shield(asyncio.wrap_future(load_columns()))


def _load(module: Future[ModuleType]) -> None:
    try:
        import pyarrow as pa

        from kohort.protocol.records import columns

        # Compiled code is read from its cache when it's called first.
        (batch,) = columns.encode_columns(pa.table({"key": [b""], "value": [b""]}))
        columns.decode_columns(bytes(batch))
    except BaseException as error:
        module.set_exception(error)
    else:
        module.set_result(columns)
