"""A request by HTTP whose answer is bounded, in size and in time, whatever the other side does."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

__all__ = ["HttpClosedError", "HttpRequestError", "HttpStatusError", "http_request"]

_GOOD: Final = 200


class HttpRequestError(OSError):
    """There is no answer, or none that can be used: says why."""


class HttpClosedError(HttpRequestError):
    """The other side ends the connection instead: it may speak HTTPS where this doesn't, or want a certificate."""


class HttpStatusError(HttpRequestError):
    """The answer is a refusal.

    Attributes:
        status: HTTP's number of it.
        body: what came with it.
    """

    def __init__(self, status: int, reason: str, body: bytes = b"") -> None:
        super().__init__(f"it answers {status} {reason[:100]}")
        self.status = status
        self.body = body


def http_request(
    url: str,
    *,
    seconds: float,
    max_bytes: int,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> bytes:
    """Returns what is answered with status 200. It blocks, so it belongs into a thread.

    Redirects aren't followed, and no proxy is used: the answer is that of who is named.

    Args:
        url: http or https.
        seconds: for all of it, until the last byte. To look up the name may take longer, and so may a host with many
            addresses of which none answers.
        max_bytes: of the answer, without its headers.
        body: is posted; None to get.
        tls: for https; None for the system's authorities.

    Raises:
        HttpStatusError: another status.
        HttpClosedError: the connection is ended instead.
        HttpRequestError: nobody answers, or not in time, or too much.
    """
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    exchange = _Exchange(seconds)
    try:
        connection = _connection(parts)
        connection.sock = exchange.connect(connection.host, connection.port, parts.scheme == "https", tls)
        connection.request("GET" if body is None else "POST", path, body, {"User-Agent": "kohort", **(headers or {})})
        with connection.getresponse() as response:  # which holds the socket until it is read to its end or closed
            data = response.read(max_bytes + 1)
        if exchange.late:  # an answer that ends with the connection would look complete
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:
        late = exchange.late or isinstance(error, TimeoutError)  # whichever of the two clocks strikes first
        why = f"no answer within {seconds:g} s" if late else _reason(error)
        raise (HttpClosedError if not late and _is_end(error) else HttpRequestError)(why) from None
    finally:
        exchange.close()
    if response.status != _GOOD:
        raise HttpStatusError(response.status, response.reason, data[:max_bytes])
    if len(data) > max_bytes:
        raise HttpRequestError(f"its answer is larger than {max_bytes} bytes")
    return data


def _connection(parts: SplitResult) -> http.client.HTTPConnection:
    """What speaks HTTP; its socket is made here, so that it can be ended from outside."""
    if not parts.hostname:
        raise ValueError("there is no host in the URL")
    usual = 443 if parts.scheme == "https" else 80
    connection = http.client.HTTPConnection(parts.hostname, parts.port or usual)
    connection.default_port = usual  # which isn't said in the header Host
    return connection


def _is_end(error: Exception) -> bool:
    untrusted = isinstance(error, ssl.SSLCertVerificationError)
    return isinstance(error, ConnectionResetError | BrokenPipeError | ssl.SSLError) and not untrusted


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate isn't trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class _Exchange:
    """A connection that is cut when the time is over.

    Attributes:
        late: whether it was.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self.late = False
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def connect(self, host: str, port: int, secure: bool, tls: ssl.SSLContext | None) -> socket.socket:
        self._take(socket.create_connection((host, port), self._seconds))
        assert self._socket is not None
        if secure:
            context = tls or ssl.create_default_context()
            wrapped = context.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
            self._take(wrapped)
            wrapped.do_handshake()
        return self._socket

    def _take(self, connected: socket.socket) -> None:
        self._socket = connected
        if self.late:
            raise TimeoutError

    def _cut(self) -> None:
        self.late = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # what is read there ends

    def close(self) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()
