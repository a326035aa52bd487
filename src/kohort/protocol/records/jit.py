"""Compiles loops with numba; the machine code is cached on disk."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["copy_bytes", "inlined", "kernel", "load_word"]

_warned = False


def kernel(function: Callable[..., Any], *, inline: Literal["never", "always"] = "never") -> Callable[..., Any]:
    """Compiles `function` on its first call, to run without the GIL, and caches the code on disk.

    If there is no writable directory for the cache (beside the source or in the user's cache directory), every process
    compiles it again, with one warning.
    """
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, inline=inline)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _warn()
        compiled = numba.njit(nogil=True, inline=inline)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inlines `function` into every kernel that calls it."""
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
"""`copy_bytes(target, at, source, start, size)` for kernels: memcpy between two arrays of bytes, without bounds checks.

The compiler doesn't turn a loop over bytes into memcpy; it is some ten times slower.
"""


def _load_word(typing: Any, source: Any, at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at = arguments
        found = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [at])
        word = context.get_value_type(types.uint64)
        return builder.load(builder.bitcast(found, word.as_pointer()), align=1)

    return types.uint64(source, types.intp), code


load_word: Any = intrinsic(_load_word)
"""`load_word(source, at)` for kernels: eight bytes of an array as the machine has them, without bounds checks."""


def _warn() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "Kohort can't cache compiled code, so each process compiles it again (some seconds): "
            "set NUMBA_CACHE_DIR to a directory that can be written",
            RuntimeWarning,
            stacklevel=3,
        )
