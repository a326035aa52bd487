"""Where tokens come from that a client logs in with (OAUTHBEARER): a function, a file, or who issues them."""

from __future__ import annotations

import asyncio
import base64
import functools
import inspect
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from kohort.client.config import ClientConfig
from kohort.http_request import HttpRequestError, HttpStatusError, http_request
from kohort.trusted_tls import trusting

__all__ = ["TokenError", "TokenIssuer", "bearer_token"]

_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_MAX_BYTES: Final = 1024 * 1024
_REFRESH_AT: Final = 0.8
"""When in its lifetime a token is replaced by a new one, as in Kafka's clients."""
_SHARE: Final = 0.5
"""How much of a connection's time its token may take, so that an old one is still of use when nobody answers."""


class TokenError(Exception):
    """There is no token; says why.

    Attributes:
        passes: whether it may be another time, as nobody answers.
    """

    def __init__(self, why: str, *, passes: bool = False) -> None:
        super().__init__(why)
        self.passes = passes


async def bearer_token(config: ClientConfig) -> str:
    """Returns a token. What may block runs in a thread.

    Raises:
        TokenError: see there.
    """
    try:
        token = await _token(config)
    except (TokenError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise TokenError(f"sasl_token failed: {type(error).__name__}: {error}") from error
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise TokenError(f"sasl_token or sasl_token_url gives {'no text' if token is None else 'what is no token'}")
    return token


async def _token(config: ClientConfig) -> Any:
    if config.sasl_token is not None:
        if inspect.iscoroutinefunction(config.sasl_token):
            return await config.sasl_token()
        made = await asyncio.to_thread(config.sasl_token)
        return await made if inspect.isawaitable(made) else made
    url = config.sasl_token_url or ""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return await asyncio.to_thread(_in_file, Path(unquote(parts.path)))
    seconds = config.socket_connection_setup_timeout_ms / 1000 * _SHARE
    issuer = _issuer(
        url, config.sasl_username or "", config.sasl_password or "", config.sasl_scope, config.sasl_token_cafile
    )
    return await asyncio.to_thread(issuer.token, seconds)


def _in_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode().strip()
    except OSError as error:
        raise TokenError(f"sasl_token_url: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TokenError(f"sasl_token_url: {path} isn't a text") from error


class TokenIssuer:
    """Who issues tokens for a client's id and secret (RFC 6749, section 4.4); a token is kept while it is fresh.

    Args:
        url: https.
        cafile: PEM file of whom to trust there; None for the system's authorities.
        clock: in seconds.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        scope: str | None,
        cafile: str | Path | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        credentials = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
        self._headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._body = urlencode({"grant_type": "client_credentials", **({"scope": scope} if scope else {})}).encode()
        self._cafile = cafile
        self._clock = clock
        self._lock = threading.Lock()
        self._kept = ""
        self._fresh_until = self._good_until = -1.0
        self._failure: TokenError | None = None
        self._failed_at = -1.0

    def token(self, seconds: float) -> str:
        """Returns a token; an old one that is still good, if nobody answers. It blocks.

        Who comes while another one asks takes what that one gets, also if it is a failure: otherwise all that wait
        would ask one after another, and hold a thread each for so long.

        Args:
            seconds: how long the answer may take.

        Raises:
            TokenError: there is none.
        """
        came = self._clock()
        with self._lock:
            now = self._clock()
            if now < self._fresh_until:
                return self._kept
            try:
                if self._failure is not None and came < self._failed_at:
                    raise TokenError(str(self._failure), passes=self._failure.passes)
                token, lifetime = self._ask(seconds)
            except TokenError as error:
                self._failure, self._failed_at = error, self._clock()
                if error.passes and self._failed_at < self._good_until:
                    return self._kept
                raise
            self._failure = None
            self._kept = token
            self._fresh_until, self._good_until = now + lifetime * _REFRESH_AT, now + lifetime
            return token

    def _ask(self, seconds: float) -> tuple[str, float]:
        try:
            tls = trusting(self._cafile)
        except OSError as error:
            raise TokenError(f"sasl_token_cafile={self._cafile}: {error.strerror or error}") from error
        try:
            data = http_request(
                self._url, seconds=seconds, max_bytes=_MAX_BYTES, body=self._body, headers=self._headers, tls=tls
            )
        except HttpRequestError as error:
            passes = not isinstance(error, HttpStatusError) or error.status >= 500
            raise TokenError(f"sasl_token_url={self._url}: {error}", passes=passes) from error
        try:
            answer = json.loads(data)
            token, lifetime = answer["access_token"], answer.get("expires_in", 0)
            if not isinstance(token, str):
                raise TypeError(type(token))
            return token, float(lifetime)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise TokenError(f"sasl_token_url={self._url}: no access_token in its answer") from error


@functools.lru_cache(maxsize=64)
def _issuer(url: str, client_id: str, secret: str, scope: str | None, cafile: str | Path | None) -> TokenIssuer:
    """All connections with the same settings share one, so that a token is asked for once."""
    return TokenIssuer(url, client_id, secret, scope, cafile)
