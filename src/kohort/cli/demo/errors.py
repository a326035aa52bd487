"""The demo's error."""

from __future__ import annotations


class DemoError(Exception):
    """The demo can't go on; the text says why, and what to do."""
