"""The files of a directory that is for one user alone: read, and written so that a crash leaves the old or the new."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kohort.broker.config.errors import ConfigError

PUBLIC: Final = 0o644
SECRET: Final = 0o600


def make_directory(path: Path) -> None:
    """Makes a directory that nobody else may look into, unless there is one.

    Raises:
        ConfigError: everybody may write there.
        OSError: it can't be made.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o002:
        raise ConfigError(f"{path}: every user of this machine may write there; chmod 700 {path}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps other processes out of a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(path: Path) -> str | None:
    """Returns a file's text; None if it isn't there.

    Raises:
        ConfigError: it isn't text.
        OSError: it can't be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: it isn't a text file") from None


def others_may_read(path: Path) -> bool:
    """Whether other users of this machine may."""
    return bool(path.stat().st_mode & 0o077)


def write(path: Path, text: str, mode: int) -> None:
    """Writes a file, whole or not at all; left as it is if it has the text.

    Raises:
        OSError: it can't be written.
    """
    if read(path) == text:
        return
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)  # of a crash
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, mode)
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
