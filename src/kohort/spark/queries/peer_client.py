"""Sends queries to other instances."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from kohort.http_access import OPEN, HttpAccess
from kohort.spark.queries.peer_messages import PeerQuery, QueryResult, decode_result, encode
from kohort.streams.endpoint import Endpoint

FORWARDED: Final = "/forwarded"
"""The path of queries from other instances. They are never forwarded again, so that none goes round in circles."""

MESSAGE_PACK: Final = "application/msgpack"

_MAX_RESULT: Final = 64 * 1024 * 1024
_CONNECT_TIMEOUT_S: Final = 2.0


class PeerError(Exception):
    """Another instance can't be reached, or sent no valid result."""


class PeerClient:
    """The connections to other instances, which ask the same of us as we of them (`access`)."""

    def __init__(self, timeout_ms: int, access: HttpAccess = OPEN) -> None:
        self._access = access
        self._timeout = ClientTimeout(total=timeout_ms / 1000, sock_connect=min(_CONNECT_TIMEOUT_S, timeout_ms / 1000))
        self._session: ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def query(self, peer: Endpoint, query: PeerQuery) -> QueryResult:
        """Sends a query to another instance.

        Raises:
            PeerError: it can't be reached in time, or sends no valid result.
        """
        if self._session is None:
            self._session = ClientSession(
                timeout=self._timeout, connector=TCPConnector(limit=64, keepalive_timeout=15), trust_env=False
            )
        headers = {"Content-Type": MESSAGE_PACK}
        if self._access.authorization is not None:
            headers["Authorization"] = self._access.authorization
        try:
            url = URL.build(scheme=self._access.scheme, host=peer.host, port=peer.port, path=FORWARDED)
            async with self._session.post(
                url, data=encode(query), headers=headers, ssl=self._access.client or True, allow_redirects=False
            ) as response:
                if response.status != 200 or response.content_type != MESSAGE_PACK:
                    raise PeerError(f"it answered {response.status} {response.reason}")
                body = bytearray()
                async for piece in response.content.iter_chunked(1 << 18):
                    body += piece
                    if len(body) > _MAX_RESULT:
                        raise PeerError("its answer is too long")
            return decode_result(body)
        except TimeoutError:
            raise PeerError(f"no answer within {self._timeout.total:g} s") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PeerError(f"its answer is invalid: {error}") from error
        except (ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise PeerError(str(error) or type(error).__name__) from error


def address(endpoint: Endpoint) -> str:
    """An endpoint as "host:port"."""
    return f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
