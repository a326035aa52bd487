"""Where a client's tokens come from: functions, files, and who issues them."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.client import tokens
from kohort.client.config import ClientConfig
from kohort.client.tokens import TokenError, TokenIssuer, bearer_token
from tests.broker.certificates import CA
from tests.web_server import WebServer, web_server


def token(**settings: Any) -> str:
    known = {"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    return asyncio.run(bearer_token(ClientConfig(**known, **settings)))


async def coroutine() -> str:
    assert threading.current_thread() is threading.main_thread()
    return "a.b.c"


def blocking() -> str:
    assert threading.current_thread() is not threading.main_thread()
    return "a.b.c"


@pytest.mark.parametrize("function", [coroutine, blocking, lambda: coroutine()])
def test_functions(function: Any) -> None:
    assert token(sasl_token=function) == "a.b.c"


def failing() -> str:
    raise KeyError("no such secret")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (failing, "sasl_token failed: KeyError: 'no such secret'"),
        (lambda: None, "gives no text"),
        (lambda: b"a.b.c", "gives what is no token"),
        (lambda: "a\x01b", "gives what is no token"),
        (lambda: "", "gives what is no token"),
    ],
)
def test_functions_that_give_none(function: Any, says: str) -> None:
    with pytest.raises(TokenError, match=says):
        token(sasl_token=function)


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    for written in ("first", "second"):
        path.write_text(f" {written}\n")
        assert token(sasl_token_url=path.as_uri()) == written
    path.write_bytes(b"\xff")
    with pytest.raises(TokenError, match="isn't a text"):
        token(sasl_token_url=path.as_uri())
    path.unlink()
    with pytest.raises(TokenError, match="a token: No such file"):
        token(sasl_token_url=path.as_uri())


@pytest.fixture
def issuer() -> Iterator[WebServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert("localhost").configure_cert(context)
    with web_server(context) as server:
        server.body = answer("first")
        yield server


@pytest.fixture
def cafile(tmp_path: Path) -> Path:
    CA.cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path / "ca.pem"


def answer(value: str, **more: object) -> bytes:
    return json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 100, **more}).encode()


def test_who_issues_tokens_is_asked_once(issuer: WebServer, cafile: Path) -> None:
    settings = {
        "sasl_token_url": issuer.url,
        "sasl_username": "me",
        "sasl_password": "a secret",
        "sasl_scope": "read write",
        "sasl_token_cafile": cafile,
    }
    assert [token(**settings), token(**settings)] == ["first", "first"]
    ((_, headers, body),) = issuer.asked
    assert body == b"grant_type=client_credentials&scope=read+write"
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"me:a secret"


def test_a_token_is_replaced_before_it_expires_and_kept_while_nobody_answers(issuer: WebServer, cafile: Path) -> None:
    now = 0.0
    source = TokenIssuer(issuer.url, "me", "secret", None, cafile, lambda: now)
    assert source.token(20) == "first"
    issuer.body = answer("second")
    now = 79.0
    assert source.token(20) == "first"
    issuer.status, now = 503, 81.0
    assert source.token(20) == "first"
    now = 100.0
    with pytest.raises(TokenError, match="503") as raised:
        source.token(20)
    assert raised.value.passes
    issuer.status = 200
    assert source.token(20) == "second"
    issuer.status, now = 401, 185.0
    with pytest.raises(TokenError, match="401") as raised:
        source.token(20)
    assert not raised.value.passes


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"access_token": null}',
        b'{"access_token": "a", "expires_in": "soon"}',
        b'{"access_token": "a", "expires_in": 1' + b"0" * 400 + b"}",
        b"[" * 100_000,
    ],
)
def test_answers_without_a_token(body: bytes, issuer: WebServer, cafile: Path) -> None:
    issuer.body = body
    with pytest.raises(TokenError, match="no access_token in its answer"):
        TokenIssuer(issuer.url, "me", "secret", None, cafile).token(20)


def test_an_old_token_is_of_use_before_the_connection_s_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    class Issuer:
        def token(self, seconds: float) -> str:
            limits.append(seconds)
            return "a.b.c"

    monkeypatch.setattr(tokens, "_issuer", lambda *settings: Issuer())
    credentials = {"sasl_username": "me", "sasl_password": "a secret"}
    token(sasl_token_url="https://a/", socket_connection_setup_timeout_ms=8000, **credentials)
    assert limits == [4.0]


def test_who_waits_for_another_s_answer_does_not_ask_again(issuer: WebServer, cafile: Path) -> None:
    times = iter(range(100))
    waiting = threading.Event()

    def clock() -> float:
        now = next(times)
        if now == 2:  # the first one has come and asks; this is the second
            waiting.set()
        return now

    source = TokenIssuer(issuer.url, "me", "secret", None, cafile, clock)
    ask, refused = source._ask, []

    def slow(seconds: float) -> tuple[str, float]:
        second.start()
        assert waiting.wait(20)
        return ask(seconds)

    def fails() -> None:
        with pytest.raises(TokenError, match="503") as raised:
            source.token(20)
        refused.append(raised.value.passes)

    second = threading.Thread(target=fails)
    source._ask, issuer.status = slow, 503  # type: ignore[method-assign]
    fails()
    second.join()
    assert (refused, len(issuer.asked)) == ([True, True], 1)
    source._ask, issuer.status = ask, 200  # type: ignore[method-assign]
    assert source.token(20) == "first"


def test_a_token_without_a_lifetime_is_asked_for_each_time(issuer: WebServer, cafile: Path) -> None:
    issuer.body = b'{"access_token": "a"}'
    source = TokenIssuer(issuer.url, "me", "secret", None, cafile)
    assert [source.token(20), source.token(20), len(issuer.asked)] == ["a", "a", 2]


def test_whom_to_trust_is_not_there(issuer: WebServer, tmp_path: Path) -> None:
    with pytest.raises(TokenError, match=r"sasl_token_cafile=.*none\.pem"):
        TokenIssuer(issuer.url, "me", "secret", None, tmp_path / "none.pem").token(20)
