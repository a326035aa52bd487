"""Deletes the state directory of an application that doesn't run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kohort.spark.state.directory import METADATA_FILE, file_name, lock_directory
from kohort.spark.state.errors import StateDirectoryError


def application_directory(path: Path | str, application_id: str) -> Path | None:
    """The application's own directory in `path`; None if there is none that `StateDirectory` has made."""
    home = Path(path) / file_name(application_id)
    return home if (home / METADATA_FILE).is_file() else None


def delete_application_directory(path: Path | str, application_id: str) -> bool:
    """Deletes the application's directory in `path` with all stores; returns whether there was one.

    Raises:
        StateDirectoryError: a process uses it, or it can't be deleted.
    """
    home = application_directory(path, application_id)
    if home is None:
        return False
    try:
        lock = lock_directory(home)
        try:
            shutil.rmtree(home)
        finally:
            os.close(lock)
    except OSError as error:
        raise StateDirectoryError(f"the state directory {home} can't be deleted: {error.strerror}") from error
    return True
