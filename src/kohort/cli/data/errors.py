"""Errors in input data."""

from __future__ import annotations


class DataError(Exception):
    """Input that can't be read; the text says where (file, line) and what is wrong. What comes before it was read."""
