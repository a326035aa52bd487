"""Short pauses of Python's garbage collector, in a process that is a broker alone.

A full collection looks at all objects, and everybody waits for it: 200 ms with a million of them, as groups, partitions
and large messages have. What has survived one is therefore frozen: the next looks only at what has come since. Frozen
objects are freed as always when nothing refers to them; they would stay only as parts of a circle. So that these don't
add up, all are looked at again when there are very many, and whenever there are twice as many.
"""

from __future__ import annotations

import gc
from typing import Final

FULL: Final = 2
"""The oldest generation, whose collection is a full one."""

VERY_MANY: Final = 2_000_000
"""Frozen objects from which on all are looked at again."""


class ShortPauses:
    """Freezes what full collections leave, from now on until it is closed."""

    def __init__(self) -> None:
        gc.freeze()
        self._thaw_at = VERY_MANY
        gc.callbacks.append(self._collected)

    def close(self) -> None:
        gc.callbacks.remove(self._collected)
        gc.unfreeze()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase != "stop" or info["generation"] != FULL:
            return
        gc.freeze()
        if gc.get_freeze_count() > self._thaw_at:
            gc.unfreeze()  # the next full collection looks at all of them
            self._thaw_at *= 2
