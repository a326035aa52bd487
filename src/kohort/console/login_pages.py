"""The page where somebody logs in, and their way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from aiohttp import web

from kohort.console.audit import AuditLog, Who
from kohort.console.forms import fields_of
from kohort.console.login import Login
from kohort.console.sessions import FormTokens, Session, Sessions
from kohort.console.throttle import Throttle
from kohort.console.visit import VISIT, RefusedError

__all__ = ["LoginPages", "way_on"]

_LONGEST_NAME: Final = 1_000


class LoginPages:
    """Lets people in, and out.

    Args:
        page: makes a page of a template and its values, with a status.
        login: how somebody logs in.
        sessions: where they are kept then.
        tokens: of forms.
        audit: is told of who came in, and who didn't.
        set_cookie: gives a browser its cookie, which is for TLS alone where the page came by TLS.
        throttle: slows down who guesses.
    """

    def __init__(
        self,
        page: Callable[..., web.Response],
        login: Login,
        sessions: Sessions,
        tokens: FormTokens,
        audit: AuditLog,
        set_cookie: Callable[[web.Response, str, bool], None],
        throttle: Throttle,
    ) -> None:
        self._page = page
        self._login = login
        self._sessions = sessions
        self._tokens = tokens
        self._audit = audit
        self._set_cookie = set_cookie
        self._throttle = throttle

    async def form(self, request: web.Request) -> web.Response:
        """The page."""
        return self._form(way_on(request.query.get("next", "")))

    def _form(self, after: str, problem: str = "", status: int = 200) -> web.Response:
        return self._page("login", status, here="", by_name=self._login.by_name, after=after, problem=problem)

    async def enter(self, request: web.Request) -> web.Response:
        """Lets somebody in, to the page that they asked for."""
        visit, fields = VISIT.get(), await fields_of(request)
        after, name, secret = way_on(fields.text("next")), fields.raw("name"), fields.raw("secret")
        if not self._tokens.fits(visit.visitor, fields.text("form_token")):
            return self._form(after, "This page is an old one; try once more.", 403)
        if len(name) > _LONGEST_NAME or len(secret) > _LONGEST_NAME:
            return self._form(after, "That is too long.", 400)
        who = Who(name if self._login.by_name else "", visit.who.address)
        wait = self._throttle.begin(who.address, who.user)
        if wait > 0:
            self._audit.refused(who, "too many attempts", action="login")
            response = self._form(after, f"Too many attempts: try again in {math.ceil(wait)} s.", 429)
            response.headers["Retry-After"] = str(math.ceil(wait))
            return response
        try:
            entered = await self._login.enter(name, secret)
        except RefusedError as error:
            self._audit.refused(who, str(error), action="login")
            return self._form(after, str(error), error.status)
        self._throttle.succeeded(who.address, who.user)
        if visit.session is not None:
            self._sessions.end(visit.session)
        session = self._sessions.begin(entered.user, entered.desk, entered.end)
        try:
            self._audit.write(Who(session.user, who.address), "done", action="login", target="")
        except OSError:
            self._sessions.end(session)
            raise
        response = web.Response(status=303, headers={"Location": after})
        self._set_cookie(response, session.visitor, (request.headers.get("Origin") or "").startswith("https://"))
        return response

    async def leave(self, request: web.Request) -> web.Response:
        """Ends a session."""
        visit, fields = VISIT.get(), await fields_of(request)
        session: Session | None = visit.session
        if session is not None and self._tokens.fits(visit.visitor, fields.text("form_token")):
            self._sessions.end(session)
            self._audit.write(visit.who, "done", action="logout", target="")
        return web.Response(status=303, headers={"Location": "/login"})


def way_on(path: str) -> str:
    """Where somebody goes after the login: a page of the console, whatever an address says."""
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path.startswith("/") and not path.startswith(("//", "/login")) else "/groups"
