"""A sink of batches that takes each id once: a database, to which several processes write."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS batches (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS rows (value TEXT);
CREATE TABLE IF NOT EXISTS calls (id TEXT, rows TEXT);
"""


class BatchSink:
    """Keeps the rows of a batch and its id in one transaction; and, for tests, each call."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, batch_id: str, values: list[str]) -> None:
        """Takes a batch, unless it has its id."""
        with closing(sqlite3.connect(self._path, timeout=30)) as database:
            database.executescript(_TABLES)
            with database:
                database.execute("INSERT INTO calls VALUES (?, ?)", (batch_id, ",".join(sorted(values))))
                if database.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch_id,)).rowcount:
                    database.executemany("INSERT INTO rows VALUES (?)", [(value,) for value in values])

    @property
    def rows(self) -> list[str]:
        """All rows."""
        with closing(sqlite3.connect(self._path)) as database:
            return [value for (value,) in database.execute("SELECT value FROM rows")]

    @property
    def calls(self) -> dict[str, list[str]]:
        """The rows of each call, by the batch's id."""
        found: dict[str, list[str]] = defaultdict(list)
        with closing(sqlite3.connect(self._path)) as database:
            for batch_id, rows in database.execute("SELECT id, rows FROM calls"):
                found[batch_id].append(rows)
        return found
