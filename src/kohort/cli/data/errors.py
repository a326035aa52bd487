"""What is wrong with data that a command was given."""

from __future__ import annotations

__all__ = ["DataError"]


class DataError(Exception):
    """Input that can't be read as it should: where (file, line) and what is wrong.

    What was read before it has been handed on.
    """
