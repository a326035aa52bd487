"""Who has logged in: sessions that end, by themselves at the latest."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kohort.console.desk import Desk

IDLE_S: Final = 1_800.0
"""A session ends when nothing was asked for so long; a page that is kept up to date asks."""

LONGEST_S: Final = 43_200.0
"""And after so long, whatever is asked."""

MOST: Final = 32
"""Sessions at a time; of more, one ends: of who begins another, or else of who has most, the one used longest ago."""

_VISITOR: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(slots=True)
class Session:
    """Somebody who has logged in.

    Attributes:
        visitor: the value of their cookie.
        user: their name.
        desk: what their pages are made with.
        end: called once, when it ends.
        began, used: when they logged in, and when they last asked for something, by the clock.
        is_open: whether it hasn't ended.
    """

    visitor: str = field(repr=False)
    user: str
    desk: Desk
    end: Callable[[], None]
    began: float
    used: float
    is_open: bool = True
    _holds: int = 0

    def hold(self) -> None:
        """Keeps what belongs to it until `release`, even if it ends before: something is being done with it."""
        self._holds += 1

    def release(self) -> None:
        """Ends a `hold`."""
        self._holds -= 1
        self._end_unless_held()

    def close(self) -> None:
        """Ends it. May be called twice."""
        if self.is_open:
            self.is_open = False
            self._end_unless_held()

    def _end_unless_held(self) -> None:
        if not self.is_open and not self._holds:
            self.end()


class Sessions:
    """All sessions.

    Args:
        clock: seconds, which only go on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[str, Session] = {}

    def begin(self, user: str, desk: Desk, end: Callable[[], None]) -> Session:
        """Begins one, with a visitor that nobody could know before."""
        self.end_old()
        while len(self._open) >= MOST:
            having = Counter(each.user for each in self._open.values())
            having[user] += MOST if having[user] else 0
            self.end(max(self._open.values(), key=lambda each: (having[each.user], -each.used)))
        now = self._clock()
        session = Session(new_visitor(), user, desk, end, now, now)
        self._open[session.visitor] = session
        return session

    def find(self, visitor: str) -> Session | None:
        """The session of a cookie, which is used with that; None if it has none, or not any more."""
        session = self._open.get(visitor)
        return session if session is not None and self.use(session) else None

    def use(self, session: Session) -> bool:
        """Notes that something is asked; whether the session is open."""
        self._end_if_old(session)
        if session.is_open:
            session.used = self._clock()
        return session.is_open

    def end(self, session: Session) -> None:
        """Ends one. May be called twice."""
        self._open.pop(session.visitor, None)
        session.close()

    def end_old(self) -> None:
        """Ends those whose time is over."""
        for session in [*self._open.values()]:
            self._end_if_old(session)

    def end_all(self) -> None:
        """Ends all."""
        for session in [*self._open.values()]:
            self.end(session)

    def _end_if_old(self, session: Session) -> None:
        now = self._clock()
        if now - session.used > IDLE_S or now - session.began > LONGEST_S:
            self.end(session)


class FormTokens:
    """Tokens in forms, by which a form is one of the console's own, shown to who sends it."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def of(self, visitor: str) -> str:
        """The token for a visitor."""
        return hmac.new(self._secret, visitor.encode(), hashlib.sha256).hexdigest()

    def fits(self, visitor: str, token: str) -> bool:
        """Whether it is the visitor's; takes as long for any."""
        return hmac.compare_digest(self.of(visitor).encode(), token.encode(errors="replace"))


def new_visitor() -> str:
    """A value for a cookie."""
    return secrets.token_urlsafe(32)


def is_visitor(text: str) -> bool:
    """Whether a cookie may have this value."""
    return _VISITOR.fullmatch(text) is not None
