"""The error of the demo."""

from __future__ import annotations

__all__ = ["DemoError"]


class DemoError(Exception):
    """The demo can't go on; says why, and what to do."""
