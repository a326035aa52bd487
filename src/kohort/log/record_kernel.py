"""The compiled check of records, where numba is installed: loaded when it begins to pay.

It takes a hundredth of the time that Python does for records that aren't alike, but 100 MB of memory and a second to
load: a server whose clients send few of these does without.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from kohort.extras import are_installed

log = logging.getLogger("kohort.log")

PAYS_AFTER: Final = 200_000
"""Records that were checked one by one, about a quarter of a second."""

Check: TypeAlias = Callable[[bytes, int, bool, int, int, int], int | None]
"""`kohort.protocol.records.check_kernel.check`."""


class RecordKernel:
    """The compiled check, once there is one.

    Attributes:
        check: None until it is loaded.
    """

    def __init__(self) -> None:
        self.check: Check | None = None
        self._left = PAYS_AFTER

    def missed(self, records: int) -> None:
        """Says that so many records were checked without it."""
        if self._left <= 0:
            return
        self._left -= records
        if self._left <= 0 and are_installed(("numba", "numpy")):
            threading.Thread(target=self.load, name="load the check of records", daemon=True).start()

    def load(self) -> None:
        """Loads it, and compiles it where that hasn't been done before."""
        try:
            from kohort.protocol.records.check_kernel import check

            check(b"", 0, False, 0, 0, 0)
            check(b"\x0c\0\0\0\1\1\0", 1, True, 0, 0, 0)
        except Exception as error:  # of whatever is installed there: Python does it, too
            log.warning("the compiled check of records can't be used: %s", error)
        else:
            self.check = check


KERNEL: Final = RecordKernel()
"""That of this process."""
