"""What is wrong with a program."""

from __future__ import annotations

__all__ = ["ProgramError"]


class ProgramError(ValueError):
    """The program can't run as it is written. Says what is wrong, where, and what to write instead."""
