"""Compiles loops with numba, once: the machine code is kept on disk."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["copy_bytes", "inlined", "kernel"]

_told = False


def kernel(function: Callable[..., Any], *, inline: Literal["never", "always"] = "never") -> Callable[..., Any]:
    """Compile `function` on its first call, without the GIL, and cache the code on disk.

    Where there is no place to cache (neither beside the source nor in the user's cache directory can be written), it
    is compiled anew in every process, and a warning says so, once.
    """
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, inline=inline)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _tell()
        compiled = numba.njit(nogil=True, inline=inline)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` into every kernel that calls it."""
    return kernel(function, inline="always")


def _copy_bytes(typing: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_type, _, source_type, _, _ = signature.args
        to, at, of, start, size = arguments
        target_at = builder.gep(context.make_array(target_type)(context, builder, to).data, [at])
        source_at = builder.gep(context.make_array(source_type)(context, builder, of).data, [start])
        cgutils.raw_memcpy(builder, target_at, source_at, size, context.get_constant(types.intp, 1))  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), code


copy_bytes: Any = intrinsic(_copy_bytes)
"""`copy_bytes(target, at, source, start, size)` for kernels: C's memcpy between two arrays of bytes, unchecked.

The compiler makes none of a loop over bytes, which takes some ten times as long.
"""


def _tell() -> None:
    global _told
    if not _told:
        _told = True
        warnings.warn(
            "Kohort can't cache compiled code, so each process compiles it anew (some seconds): "
            "set NUMBA_CACHE_DIR to a directory that can be written",
            RuntimeWarning,
            stacklevel=3,
        )
