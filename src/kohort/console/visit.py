"""Who asks for the page that is being made: all that makes it knows, and so nothing is made with another's rights."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from kohort.console.audit import Who
from kohort.console.desk import Desk
from kohort.console.sessions import Session

__all__ = ["VISIT", "MissingError", "RefusedError", "Visit"]


@dataclass(frozen=True, slots=True)
class Visit:
    """A request.

    Attributes:
        who: asks.
        visitor: the value of their cookie.
        is_new: whether they have no such cookie yet.
        form_token: what forms on their pages carry.
        session: theirs; None without a login.
        desk: what their page is made with; None before they have logged in.
    """

    who: Who
    visitor: str
    is_new: bool
    form_token: str
    session: Session | None = None
    desk: Desk | None = None


VISIT: Final[ContextVar[Visit]] = ContextVar("visit")
"""Of the request that is being answered."""


class MissingError(Exception):
    """What is asked for isn't there: says so. The answer asks whether a similar name was meant."""


class RefusedError(Exception):
    """Something isn't done for who asks: says why.

    Attributes:
        status: of the answer.
    """

    def __init__(self, why: str, status: int = 403) -> None:
        super().__init__(why)
        self.status = status
