"""Ways to log in: by a token that the console was given, or by a name and password that a broker takes."""

from __future__ import annotations

import asyncio
import hmac
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.errors import AuthenticationError
from kohort.console.desk import Desk, desk_of
from kohort.console.record_decoding import RecordDecoder
from kohort.console.visit import RefusedError

__all__ = ["Entered", "Login", "ScramLogin", "TokenLogin"]

log = logging.getLogger("kohort.console")

_AT_ONCE: Final = 4
"""Logins that brokers are asked about at the same time."""

_WITHIN_MS: Final = 10_000

_FIRST_LOOK_S: Final = 5.0
"""For a first look at the groups, so that the page after the login has them; it comes without if they take longer."""


class Entered(NamedTuple):
    """Somebody who has been let in.

    Attributes:
        user: their name.
        desk: what their pages are made with.
        end: to be called when their session ends.
    """

    user: str
    desk: Desk
    end: Callable[[], None]


class Login(ABC):
    """A way to log in."""

    by_name: ClassVar[bool]
    """Whether a name and a password are asked for; a token else."""

    @abstractmethod
    async def enter(self, name: str, secret: str) -> Entered:
        """Lets somebody in.

        Raises:
            RefusedError: they aren't let in.
            ClientError, KafkaError: the brokers don't answer.
        """

    async def close(self) -> None:
        """Ends all that is left of sessions."""
        return


class TokenLogin(Login):
    """By a token. All who have it are the console's user to the brokers, and nobody knows who they are.

    Args:
        token: at least 16 characters that nobody guesses.
        desk: of the console's user.
    """

    by_name = False

    def __init__(self, token: bytes, desk: Desk) -> None:
        self._token = token
        self._desk = desk

    async def enter(self, name: str, secret: str) -> Entered:
        """Compares the token, which takes as long for any."""
        if not hmac.compare_digest(secret.strip().encode(errors="replace"), self._token):
            raise RefusedError("That isn't the token.", 401)
        return Entered("token", self._desk, lambda: None)


@dataclass(eq=False, slots=True)
class _Shared:
    """A desk, of all sessions that began with the same name and password."""

    secret: str = field(repr=False)
    desk: Desk
    task: asyncio.Task[None]
    sessions: int = 0

    def leave(self) -> None:
        self.sessions -= 1
        if not self.sessions:
            self.task.cancel()


class ScramLogin(Login):
    """By a user of the cluster, as whom all that they see and do is asked of the brokers.

    Sessions of one user have one desk, so that their histories don't begin anew with each, and are kept once.

    Args:
        config: of the cluster; its user isn't used.
        every: seconds from one look at the groups to the next.
        timeout_ms: for what is asked of the brokers.
        decoder: of records, for all; None for one without a schema registry.
    """

    by_name = True

    def __init__(
        self, config: ClientConfig, *, every: float, timeout_ms: int, decoder: RecordDecoder | None = None
    ) -> None:
        mechanism = config.sasl_mechanism
        self._config = replace(
            config,
            sasl_mechanism=mechanism if mechanism.startswith("SCRAM") else "SCRAM-SHA-512",
            sasl_token=None,
            sasl_token_url=None,
            sasl_extensions=(),
            sasl_username="",
            sasl_password="",
            bootstrap_timeout_ms=_WITHIN_MS,
            on_no_broker=None,
        )
        self._every = every
        self._decoder = decoder or RecordDecoder()
        self._timeout_ms = timeout_ms
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._running: set[asyncio.Task[None]] = set()
        self._shared: dict[str, _Shared] = {}

    async def enter(self, name: str, secret: str) -> Entered:
        """Connects to a broker by this name and password."""
        if not name or not secret:
            raise RefusedError("A name and a password are needed.", 401)
        config = replace(self._config, sasl_username=name, sasl_password=secret)
        admin = Admin(config, default_api_timeout_ms=self._timeout_ms)
        async with self._gate:
            try:
                await admin.start()
            except AuthenticationError as error:
                await admin.close()
                log.info("login refused user=%.200r reason=%s", name, error)
                raise RefusedError("The cluster doesn't let in this name with this password.", 401) from None
            except BaseException:
                await admin.close()
                raise
        shared = self._shared.get(name)
        known = shared is not None and shared.sessions > 0 and not shared.task.done() and shared.secret == secret
        if shared is None or not known:
            desk = desk_of(admin, config, self._every, self._decoder)
            shared = self._shared[name] = _Shared(secret, desk, asyncio.create_task(_run(admin, desk)))
            self._running.add(shared.task)
            shared.task.add_done_callback(lambda task: self._ended(name, task))
        shared.sessions += 1
        try:
            if known:
                await admin.close()
            await shared.desk.watcher.news(0, _FIRST_LOOK_S)
        except BaseException:  # who wanted to come in has gone
            shared.leave()
            raise
        return Entered(name, shared.desk, shared.leave)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if name in self._shared and self._shared[name].task is task:
            del self._shared[name]

    async def close(self) -> None:
        """Ends all, and waits until they are closed."""
        running = [*self._running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _run(admin: Admin, desk: Desk) -> None:
    try:
        await desk.run()
    finally:
        await admin.close()
