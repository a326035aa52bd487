"""What RocksDB's errors are due to: a store's files, which are then restored, or the machine, which spares them.

rocksdict raises RocksDB's status as the text of a plain `Exception`, a panic in Rust as a `BaseException`, and what
fails before RocksDB is asked as an `OSError` without errno, or again as a plain `Exception`:

    Corruption: block checksum mismatch: stored = 4235814314, computed = 704823704 …
    IO error: While appending to file: /…/0_3/delays/000004.log: File too large
    IO error: While lock file: /…/0_3/delays/LOCK: Resource temporarily unavailable
    Permission denied (os error 13)

The status alone doesn't tell: an IO error is one of the machine if the operating system's part of the text is in
`REMEDIES`; and a file that is missing is a "Corruption" and an "IO error" at once.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from rocksdict import DbClosedError

from kohort.spark.state.errors import StateError, StoreClosedError, StoreCorruptError

_IN_USE: Final = "it is open already, here or in another process; close it there"
_RIGHTS: Final = "let the user who runs this own it"

REMEDIES: Final = {
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "raise the user's disk quota",
    errno.EFBIG: "raise the limit of a file's size (ulimit -f)",
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "mount its file system for writing",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the machine's limit of open files",
    errno.ENOMEM: "give the machine more memory",
    errno.ENOLCK: _IN_USE,
    errno.EAGAIN: _IN_USE,
}
"""The operating system's errors that say nothing of the files' contents, and what to do about them."""

_PASSING: Final = (
    "Writer has previous error",  # after an error of the machine, until the store is opened again
    "Shutdown in progress",
    "Operation aborted",
    "Operation timed out",
    "Operation failed. Try again",
    "Resource busy",
)
"""RocksDB's statuses of which the same is true."""

_REMEDY_OF_TEXT: Final = {
    **{os.strerror(number): remedy for number, remedy in REMEDIES.items()},
    **dict.fromkeys(_PASSING, "try again; if it stays so, restart the application"),
}
_SEPARATORS: Final = re.compile(r"\.?(?:: |; |\n|  |$)")
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")


def state_error(error: BaseException, store: str) -> StateError | None:
    """The error of local state that an error of RocksDB is; None if it isn't RocksDB's nor the operating system's.

    Args:
        store: how messages call it.

    Returns:
        A `StoreCorruptError` only if the store's files are to blame.
    """
    if isinstance(error, StateError):
        return error
    if isinstance(error, DbClosedError):
        return StoreClosedError(f"{store} is closed")
    if isinstance(error, OSError):
        return StateError(f"{store} can't be used: {error}; {_remedy(error) or 'see to its directory'}")
    if type(error) is not Exception and type(error).__name__ != "PanicException":
        return None
    if (remedy := _remedy(error)) is not None:
        return StateError(f"{store} can't be used: {error}; {remedy}")
    return StoreCorruptError(f"{store} can't be read, and will be restored: {error}")


def _remedy(error: BaseException) -> str | None:
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return REMEDIES.get(error.errno)
    if (found := _OS_ERROR.search(text)) is not None:
        return REMEDIES.get(int(found[1]))
    return next((_REMEDY_OF_TEXT[part] for part in _SEPARATORS.split(text) if part in _REMEDY_OF_TEXT), None)
