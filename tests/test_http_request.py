from __future__ import annotations

import ssl
import time
from collections.abc import Callable

import pytest

from kohort.http_request import HttpRequestError, HttpStatusError, http_request
from tests.broker.certificates import CA
from tests.web_server import WebServer, web_server


def ask(server: WebServer, seconds: float = 20, **options: object) -> bytes:
    return http_request(server.url, seconds=seconds, max_bytes=1000, **options)  # type: ignore[arg-type]


def test_what_is_answered_is_returned() -> None:
    with web_server() as server:
        server.body = b"keys"
        assert ask(server) == b"keys"
        assert ask(server, body=b"a=b", headers={"X-One": "1"}) == b"keys"
        (path, _, nothing), (_, headers, body) = server.asked
        assert (path, nothing, body, headers["x-one"]) == ("/keys", b"", b"a=b", "1")


@pytest.mark.parametrize("status", [204, 302, 404, 500])
def test_another_status_is_an_error(status: int) -> None:
    with web_server() as server:
        server.status = status
        with pytest.raises(HttpStatusError, match=f"it answers {status} ") as raised:
            ask(server)
        assert raised.value.status == status


def test_an_answer_that_is_too_large() -> None:
    with web_server() as server:
        server.body = bytes(1001)
        with pytest.raises(HttpRequestError, match="larger than 1000 bytes"):
            ask(server)


def test_an_answer_that_does_not_end() -> None:
    with web_server() as server:
        server.body, server.cut = b"keys", True
        began = time.monotonic()
        with pytest.raises(HttpRequestError, match=r"no answer within 0.2 s"):
            ask(server, seconds=0.2)
        assert time.monotonic() - began < 60


def test_nobody_is_there() -> None:
    with web_server() as server:
        pass
    with pytest.raises(HttpRequestError, match="refused"):
        ask(server)


@pytest.mark.parametrize("url", ["http://", "http:///keys", "https://:443", "http://localhost:x"])
def test_a_url_without_a_host_or_port(url: str) -> None:
    with pytest.raises(HttpRequestError):
        http_request(url, seconds=5, max_bytes=1)


@pytest.fixture
def of_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert("localhost").configure_cert(context)
    return context


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    CA.configure_trust(context)
    return context


@pytest.mark.parametrize(("trusted", "says"), [(trusting, None), (lambda: None, "certificate isn't trusted")])
def test_tls(of_server: ssl.SSLContext, trusted: Callable[[], ssl.SSLContext | None], says: str | None) -> None:
    with web_server(of_server) as server:
        server.body = b"keys"
        if says is None:
            assert ask(server, tls=trusted()) == b"keys"
        else:
            with pytest.raises(HttpRequestError, match=says):
                ask(server, tls=trusted())
