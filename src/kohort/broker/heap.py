"""The heap of a process that is a broker alone."""

from __future__ import annotations

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

KEPT_BYTES: Final = 32 * 1024 * 1024
"""Free bytes that stay with the process."""


def keep_freed_memory() -> bool:
    """Lets the allocator keep what is freed, up to `KEPT_BYTES`; returns whether it is one that can.

    glibc gives a buffer of a megabyte back to the kernel as soon as it is freed, and has it filled with zeros, page by
    page, for the next request: more than half of what the broker did for large batches.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
