"""Compiles loops with numba, once: the machine code is kept on disk."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numba

__all__ = ["inlined", "kernel"]

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
