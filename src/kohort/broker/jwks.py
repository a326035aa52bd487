"""The keys that tokens are signed by (JWKS), kept up to date: from a file, or from where an issuer publishes them."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

from kohort.broker.config.errors import ConfigError
from kohort.http_request import http_request
from kohort.security.signed_tokens import KeySetError, VerificationKey, parse_key_set

log = logging.getLogger("kohort.broker.jwks")

T = TypeVar("T")

MAX_BYTES: Final = 1024 * 1024
"""The largest set of keys."""

ANSWER_SECONDS: Final = 10.0
"""How long a set of keys may take to come."""

FILE_SECONDS: Final = 5.0
"""How often a file is looked at, whether it has changed."""

UNKNOWN_KEY_SECONDS: Final = 10.0
"""Time between two times that the keys are asked for because of a token with an unknown one, at least."""

_LEAST_SECONDS: Final = 0.1
"""The shortest pause, whatever is configured."""

SCHEMES: Final = ("file", "http", "https")


@dataclass(frozen=True, slots=True)
class JwksSource:
    """Where keys come from, and when.

    Attributes:
        url: a file, http or https URL.
        tls: for https; None for the system's authorities.
        refresh_seconds: how often they are asked for; a file is looked at more often.
        backoff_seconds, max_backoff_seconds: the first and the longest pause after a failure.
    """

    url: str
    tls: ssl.SSLContext | None
    refresh_seconds: float
    backoff_seconds: float
    max_backoff_seconds: float

    @property
    def path(self) -> Path | None:
        """The file; None if it is none."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    def read(self) -> bytes:
        """Returns a set of keys as it is. It blocks.

        Raises:
            OSError: there is none to be had.
            KeySetError: it is too large.
        """
        path = self.path
        if path is None:
            return http_request(self.url, seconds=ANSWER_SECONDS, max_bytes=MAX_BYTES, tls=self.tls)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise KeySetError(f"it is larger than {MAX_BYTES} bytes")
        return data


class Jwks:
    """A set of keys.

    Args:
        listener: whose tokens are checked with it, for messages.

    Attributes:
        keys: those that count.
    """

    def __init__(self, source: JwksSource, listener: str) -> None:
        self._source = source
        self._listener = listener
        self._data = b""
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._asked_at = 0.0
        self.keys: Sequence[VerificationKey] = ()

    async def start(self) -> None:
        """Gets the keys, and keeps them up to date from now on.

        Raises:
            ConfigError: there are none to be had, as in Kafka.
        """
        try:
            await self._refresh()
        except (OSError, ValueError) as error:  # ValueErrors are of what is read, or of a path that can't be one
            raise ConfigError(
                f"listener {self._listener}: sasl.oauthbearer.jwks.endpoint.url={self._source.url}: {_why(error)}"
            ) from None
        self._asked_at = asyncio.get_running_loop().time() - UNKNOWN_KEY_SECONDS
        self._task = asyncio.create_task(self._keep(), name=f"kohort-jwks-{self._listener}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def expedite(self) -> None:
        """Asks for the keys soon, as a token has an unknown one; not more often than `UNKNOWN_KEY_SECONDS`."""
        self._wanted.set()

    async def _keep(self) -> None:
        source, failures = self._source, 0
        clock = asyncio.get_running_loop().time
        file = source.path is not None
        every = max(min(source.refresh_seconds, FILE_SECONDS) if file else source.refresh_seconds, _LEAST_SECONDS)
        while True:
            if failures:
                pause = min(source.backoff_seconds * 2.0 ** min(failures - 1, 32), source.max_backoff_seconds)
                await asyncio.sleep(max(pause, _LEAST_SECONDS))
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), every)
                    between = min(every, UNKNOWN_KEY_SECONDS)
                    await asyncio.sleep(self._asked_at + between - clock())
                    self._asked_at = clock()
            self._wanted.clear()
            try:
                await self._refresh()
            except (OSError, ValueError) as error:
                failures += 1
                if failures == 1:
                    log.warning(
                        "the keys of tokens can't be read, so the old ones stay listener=%s url=%s reason=%s",
                        self._listener, source.url, _why(error),
                    )  # fmt: skip
            else:
                if failures:
                    log.info("the keys of tokens are read again listener=%s url=%s", self._listener, source.url)
                failures = 0

    async def _refresh(self) -> None:
        try:  # whatever a name server or a file system does
            data, keys = await asyncio.wait_for(_in_thread(self._read), 2 * ANSWER_SECONDS)
        except TimeoutError:
            raise OSError(f"no answer within {2 * ANSWER_SECONDS:g} s") from None
        if data != self._data:
            self._data, self.keys = data, keys
            log.info(
                "keys of tokens listener=%s url=%s ids=%s", self._listener, self._source.url,
                ",".join(key.id for key in keys)[:1000],
            )  # fmt: skip

    def _read(self) -> tuple[bytes, Sequence[VerificationKey]]:
        data = self._source.read()
        return data, self.keys if data == self._data else parse_key_set(data)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


async def _in_thread(work: Callable[[], T]) -> T:
    """Runs what blocks in a thread that nobody waits for when the broker stops."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, failed = None, None
        try:
            value = work()
        except Exception as error:
            failed = error
        with suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=run, name="kohort-jwks", daemon=True).start()
    return await done
