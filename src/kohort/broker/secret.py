"""A secret of the server, which stays the same."""

from __future__ import annotations

import functools
import os
import secrets
from pathlib import Path

_BYTES = 32


@functools.cache
def kept_secret(path: Path) -> bytes:
    """Returns the random bytes of a file, which is made if it isn't there; nobody else may read it.

    Raises:
        OSError: the file can't be read or made.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        path.chmod(0o600)
        kept = path.read_bytes()
        if len(kept) == _BYTES:
            return kept
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)  # a crash has cut it short
    made = secrets.token_bytes(_BYTES)
    with os.fdopen(descriptor, "wb") as file:
        file.write(made)
    return made
