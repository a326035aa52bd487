"""What is wrong with a program, and what stops an application."""

from __future__ import annotations

__all__ = ["ApplicationError", "ProgramError"]


class ProgramError(ValueError):
    """The program can't run as it is written. Says what is wrong, where, and what to write instead.

    Attributes:
        at: the file and the line where that is written, which the message ends with; None while unknown.
    """

    at: str | None = None


class ApplicationError(Exception):
    """The application can't go on: a bad record where it is to stop at that, a job that always fails, or the like.

    Says which record or which subtopology it was, and what to do.
    """
