from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.errors import AuthenticationError, ConfigError, ConnectionLostError
from kohort.client.sasl import Exchange, ScramError, TokenRefusedError, oauthbearer, plain, scram
from kohort.protocol.message import Response
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.client.support.scram_server import SaslServer
from tests.client.support.scripted_broker import Asked, Reply, ScriptedBroker
from tests.waiting import run, until

BEAT = HeartbeatRequest(group_id="g")


def test_plain_says_name_and_password() -> None:
    exchange = plain("zoë", "p,=x")
    assert next(exchange) == "\0zoë\0p,=x".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"")
    with pytest.raises(ConfigError, match="NUL"):
        next(plain("a", "b\0c"))


def vector() -> Exchange:
    """The exchange of RFC 7677, section 3."""
    return scram("SCRAM-SHA-256", "user", "pencil", lambda: "rOprNGfwEbeRWgbNEkqO")


SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def test_scram_is_as_in_the_rfc() -> None:
    exchange = vector()
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        (SERVER_FIRST.replace(b"r=rO", b"r=xx"), None, "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=4096", None, "nonce"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), None, "4095 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999"), None, "99999999 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=-4096"), None, "iterations"),
        (SERVER_FIRST.replace(b",i=4096", b""), None, "no iterations"),
        (SERVER_FIRST.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s=!"), None, "Base64"),
        (SERVER_FIRST.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==,", b""), None, "salt"),
        (b"m=x," + SERVER_FIRST, None, "extension"),
        (b"\xff", None, "text"),
        (b"nonsense", None, "SCRAM"),
        (SERVER_FIRST, b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "signature is wrong"),
        (SERVER_FIRST, b"e=invalid-proof", "'invalid-proof'"),
        (SERVER_FIRST, b"", "SCRAM"),
    ],
)
def test_scram_trusts_no_broker_that_does_not_know_the_password(first: bytes, last: bytes | None, says: str) -> None:
    exchange = vector()
    next(exchange)
    with pytest.raises(ScramError, match=says):
        exchange.send(first)
        if last is not None:
            exchange.send(last)


def test_oauthbearer_says_the_token_and_acknowledges_a_refusal() -> None:
    exchange = oauthbearer("a.b.c", [("one", "1")])
    assert next(exchange) == b"n,,\x01auth=Bearer a.b.c\x01one=1\x01\x01"
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(TokenRefusedError, match="invalid_token"):
        exchange.send(b"")


def scenario(server: SaslServer, test: Callable[[ScriptedBroker], Any]) -> None:
    async def main() -> None:
        replies: dict[Any, Reply] = {HeartbeatRequest: lambda asked: HeartbeatResponse(), **server.script}
        async with ScriptedBroker(replies) as broker:
            await test(broker)

    run(main())


def config(broker: ScriptedBroker, server: SaslServer, **settings: Any) -> ClientConfig:
    given = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": server.mechanism,
        "sasl_username": server.username,
        "sasl_password": server.password,
    }
    return ClientConfig(bootstrap_servers=broker.address, **{**given, **settings})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("username", "password"), [("alice", "secret"), ("a=b,c", "pässwörd ｆ")])
def test_credentials_are_shown_before_anything_else(mechanism: str, username: str, password: str) -> None:
    server = SaslServer(username, password, mechanism)

    async def test(broker: ScriptedBroker) -> None:
        connection = await Connection.open(broker.broker, config(broker, server))
        await connection.ask(BEAT, HeartbeatResponse)
        await connection.close()
        with pytest.raises(AuthenticationError, match=r"127.0.0.1:\d+ .*Authentication failed"):
            await Connection.open(broker.broker, config(broker, server, sasl_password="wrong"))

    scenario(server, test)
    assert server.accepted == 1


def by_token(broker: ScriptedBroker, **settings: Any) -> ClientConfig:
    known = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    return ClientConfig(bootstrap_servers=broker.address, **{**known, **settings})


def test_tokens_are_shown_and_asked_for_again_before_the_session_ends() -> None:
    server = SaslServer("cluster=a\x01", "first", "OAUTHBEARER")
    server.lifetimes = [100, 0]
    tokens = iter(["first", "second"])

    async def token() -> str:
        server.password = next(tokens)
        return server.password

    async def test(broker: ScriptedBroker) -> None:
        settings = by_token(broker, sasl_token=token, sasl_extensions={"cluster": "a"})
        connection = await Connection.open(broker.broker, settings)
        await until(lambda: server.accepted == 2)
        await connection.ask(BEAT, HeartbeatResponse)
        await connection.close()
        assert server.password == "second"

    scenario(server, test)


def test_requests_go_on_while_a_new_token_is_fetched() -> None:
    server = SaslServer("", "good", "OAUTHBEARER")
    server.lifetimes = [50, 0]
    asked: list[None] = []
    go = asyncio.Event()

    async def token() -> str:
        asked.append(None)
        if len(asked) == 2:
            await go.wait()
        return "good"

    async def test(broker: ScriptedBroker) -> None:
        connection = await Connection.open(broker.broker, by_token(broker, sasl_token=token))
        await until(lambda: len(asked) == 2)
        await connection.ask(BEAT, HeartbeatResponse)
        assert server.accepted == 1
        go.set()
        await until(lambda: server.accepted == 2)
        await connection.ask(BEAT, HeartbeatResponse)
        await connection.close()

    scenario(server, test)


def test_a_token_that_is_refused_is_an_error() -> None:
    server = SaslServer("", "good", "OAUTHBEARER")

    async def test(broker: ScriptedBroker) -> None:
        with pytest.raises(AuthenticationError, match=r"127.0.0.1:\d+ .*: Authentication failed"):
            await Connection.open(broker.broker, by_token(broker, sasl_token=lambda: "bad"))

    scenario(server, test)


def test_no_token_is_an_error_that_names_the_broker(tmp_path: Path) -> None:
    async def test(broker: ScriptedBroker) -> None:
        url = (tmp_path / "none").as_uri()
        with pytest.raises(
            AuthenticationError, match=r"127.0.0.1:\d+ .*: no token to log in with: .*none: No such file"
        ):
            await Connection.open(broker.broker, by_token(broker, sasl_token_url=url))
        nobody = by_token(broker, sasl_token_url="https://localhost:1/", sasl_username="a", sasl_password="b")
        with pytest.raises(ConnectionLostError, match=r"localhost:1/: .*refused"):
            await Connection.open(broker.broker, nobody)

    scenario(SaslServer("", "good", "OAUTHBEARER"), test)


def test_a_mechanism_that_is_not_enabled_is_said_with_those_that_are() -> None:
    server = SaslServer("a", "b", "SCRAM-SHA-512")

    async def test(broker: ScriptedBroker) -> None:
        with pytest.raises(AuthenticationError, match="doesn't take sasl_mechanism=PLAIN, but SCRAM-SHA-512"):
            await Connection.open(broker.broker, config(broker, server, sasl_mechanism="plain"))
        broker.script[SaslHandshakeRequest] = lambda asked: SaslHandshakeResponse(error_code=34)
        with pytest.raises(AuthenticationError, match="is security_protocol right"):
            await Connection.open(broker.broker, config(broker, server))

    scenario(server, test)


def test_a_broker_with_a_wrong_signature_is_not_trusted() -> None:
    server = SaslServer("a", "b")
    server.signs = lambda signature: bytes(32)

    async def test(broker: ScriptedBroker) -> None:
        with pytest.raises(AuthenticationError, match="signature is wrong"):
            await Connection.open(broker.broker, config(broker, server))

    scenario(server, test)


def test_sessions_are_renewed_before_they_end_and_requests_wait_meanwhile() -> None:
    server = SaslServer("a", "b")
    server.lifetimes = [200, 0]
    go = asyncio.Event()

    async def slow_shake(asked: Asked) -> Response:
        if asked is not first[0]:
            await go.wait()
        return server.shake(asked)

    first: list[Asked] = []

    def shake(asked: Asked) -> Any:
        first.append(asked)
        return slow_shake(asked)

    async def test(broker: ScriptedBroker) -> None:
        broker.script[SaslHandshakeRequest] = shake
        connection = await Connection.open(broker.broker, config(broker, server))
        await until(lambda: len(broker.requests(SaslHandshakeRequest)) == 2)
        held = connection.send(BEAT, HeartbeatResponse)
        again = connection.send(BEAT, HeartbeatResponse)
        assert connection.in_flight == 3
        go.set()
        await asyncio.gather(held, again)
        kinds = [type(each.request) for each in broker.asked]
        assert kinds[-5:] == [
            SaslHandshakeRequest, SaslAuthenticateRequest, SaslAuthenticateRequest, HeartbeatRequest, HeartbeatRequest,
        ]  # fmt: skip
        assert broker.connections == 1
        await connection.ask(BEAT, HeartbeatResponse)
        await connection.close()

    scenario(server, test)
    assert server.accepted == 2


def test_a_session_that_cannot_be_renewed_is_a_lost_connection() -> None:
    server = SaslServer("a", "b")
    server.lifetimes = [50]

    async def test(broker: ScriptedBroker) -> None:
        connection = await Connection.open(broker.broker, config(broker, server))
        server.password = "changed"
        await until(lambda: connection.closed)
        with pytest.raises(ConnectionLostError, match=r"authentication couldn't be renewed: .*Authentication failed"):
            await connection.ask(BEAT, HeartbeatResponse)
        await connection.close()

    scenario(server, test)


def test_closing_during_a_renewal_ends() -> None:
    server = SaslServer("a", "b")
    server.lifetimes = [50]

    async def test(broker: ScriptedBroker) -> None:
        connection = await Connection.open(broker.broker, config(broker, server))
        broker.script[SaslHandshakeRequest] = lambda asked: None
        await until(lambda: len(broker.requests(SaslHandshakeRequest)) == 2)
        held = connection.send(BEAT, HeartbeatResponse)
        await connection.close()
        with pytest.raises(ConnectionLostError, match="it was closed here"):
            await held

    scenario(server, test)
