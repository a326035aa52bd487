"""`kohort.protocol.records.columns`, loaded in a thread: numba takes most of a second, too long for a loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import ModuleType
from typing import TypeVar

__all__ = ["columns_if_loaded", "columns_loaded", "load_columns", "load_compiled"]

T = TypeVar("T")

_lock = threading.Lock()
_module: Future[ModuleType] | None = None


def load_columns() -> Future[ModuleType]:
    """Starts to load the module and its compiled code, once."""
    global _module
    with _lock:
        if _module is None:
            _module = Future()
            threading.Thread(target=_load, args=(_module,), name="kohort-load-columns").start()
        return _module


def columns_if_loaded() -> ModuleType | None:
    """Returns the module, if it's loaded."""
    module = _module
    if module is None or not module.done() or module.exception() is not None:
        return None
    return module.result()


async def columns_loaded() -> ModuleType:
    """Waits until the module is loaded, and returns it."""
    # Shielded: a caller that is cancelled doesn't cancel the others' wait.
    return await asyncio.shield(asyncio.wrap_future(load_columns()))


def _load(module: Future[ModuleType]) -> None:
    global _module
    try:
        module.set_result(_loaded())
    except ImportError as error:  # it isn't installed, and records are decoded and encoded one after another
        module.set_exception(error)
    except BaseException as error:
        with _lock:
            _module = None  # the next call retries
        module.set_exception(error)


def load_compiled(load: Callable[[], T]) -> T:
    """Calls what loads compiled code, up to three times.

    CPython counts how deeply it nests while it parses in one place for all threads, so that two which parse at once may
    take each other for a bug, a SystemError. numba parses what it compiles.
    """
    for _ in range(2):
        with contextlib.suppress(SystemError):
            return load()
    return load()


def _loaded() -> ModuleType:
    return load_compiled(_load_columns)


def _load_columns() -> ModuleType:
    import pyarrow as pa

    from kohort.protocol.records import columns
    from kohort.protocol.records.partitioner import murmur2

    # Compiled code is read from its cache when it's called first.
    (batch,) = columns.encode_columns(pa.table({"key": [b""], "value": [b""]}))
    columns.decode_columns(bytes(batch))
    murmur2(b"")
    return columns
