"""Clients that log in with a signed token, at a server; and its keys, from a file or by HTTP."""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from pathlib import Path

import pytest

from kohort.broker import jwks
from kohort.broker.config import ConfigError
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.certificates import CA
from tests.broker.conftest import Run
from tests.broker.mutated_exchanges import fuzz
from tests.broker.raw import RawClient, frame
from tests.signed_tokens import AUDIENCE, ISSUER, key_set, signed, write_key_set
from tests.waiting import until
from tests.web_server import web_server

METADATA = MetadataRequest(topics=[])
LISTENER = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=OAUTHBEARER",
    f"sasl.oauthbearer.expected.audience=other,{AUDIENCE}",
    f"sasl.oauthbearer.expected.issuer={ISSUER}",
    "connection.failed.authentication.delay.ms=10",
)
URL = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    write_key_set(path)
    return path


async def log_in(server: Server, token: str, name: str = "") -> tuple[int, int]:
    """Says a token; returns the error and the session's lifetime in ms."""
    client = await RawClient.connect(server.port)
    try:
        assert (await client.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)).error_code == 0
        message = f"n,{name},\x01auth=Bearer {token}\x01\x01"
        response = await client.call(SaslAuthenticateRequest(auth_bytes=message.encode()))
        if response.auth_bytes:
            assert (response.error_code, response.auth_bytes) == (0, b'{"status":"invalid_token"}')
            response = await client.call(SaslAuthenticateRequest(auth_bytes=b"\x01"))
            assert response.error_message == '{"status":"invalid_token"}'
        if response.error_code:
            assert await client.closed()
        else:
            assert (await client.call(METADATA)).controller_id == 1
        return response.error_code, response.session_lifetime_ms
    finally:
        await client.close()


def test_a_good_token_is_as_long_good_as_the_session(keys: Path, with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.now = lambda: 1_800_000_000_000
        error, lifetime = await log_in(server, signed(now=1_800_000_000))
        assert (error, lifetime) == (0, 3_600_000)
        assert await log_in(server, signed(now=1_800_000_000, exp=1_800_000_007), "a=alice") == (0, 7000)

    with_server(test, *LISTENER, f"{URL}={keys.as_uri()}")


def test_the_session_ends_earlier_where_that_is_configured(keys: Path, with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.now = lambda: 1_800_000_000_000
        assert await log_in(server, signed(now=1_800_000_000)) == (0, 60_000)

    with_server(test, *LISTENER, f"{URL}={keys.as_uri()}", "connections.max.reauth.ms=60000")


def test_the_client_is_whom_the_token_names(keys: Path, with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await client.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        message = f"n,,\x01auth=Bearer {signed(sub=None, azp='bob')}\x01\x01"
        assert (await client.call(SaslAuthenticateRequest(auth_bytes=message.encode()))).error_code == 0
        assert [each.session.principal for each in server._connections] == ["User:bob"]
        await client.close()

    with_server(test, *LISTENER, f"{URL}={keys.as_uri()}", "sasl.oauthbearer.sub.claim.name=azp")


def test_another_name_than_the_tokens_is_refused(keys: Path, with_server: Run) -> None:
    async def test(server: Server) -> None:
        assert (await log_in(server, signed(), "a=root"))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED

    with_server(test, *LISTENER, f"{URL}={keys.as_uri()}")


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_bad_token_is_refused_and_the_log_says_why_once(
    acknowledged: bool, keys: Path, with_server: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kohort.broker.authentication")
    token = signed(aud="another")

    async def test(server: Server) -> None:
        if acknowledged:
            assert (await log_in(server, token))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
        else:
            client = await RawClient.connect(server.port)
            await client.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
            await client.call(SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {token}\x01\x01".encode()))
            await client.close()
        audit = server.broker.audit
        assert (audit.authentications, audit.failed_authentications) == ({}, {"OAUTHBEARER": 1})

    with_server(test, *LISTENER, f"{URL}={keys.as_uri()}")
    (said,) = [each.getMessage() for each in caplog.records if each.name == "kohort.broker.authentication"]
    assert "mechanism=OAUTHBEARER reason=its audience (aud) is 'another'" in said
    assert token not in caplog.text


def test_mutated_exchanges_learn_nothing(keys: Path, with_server: Run) -> None:
    token = signed("first", exp=1).encode()
    frames = (
        frame(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1),
        frame(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 0),
        frame(SaslAuthenticateRequest(auth_bytes=b"n,,\x01auth=Bearer %b\x01\x01" % token), 2),
        frame(SaslAuthenticateRequest(auth_bytes=b"\x01"), 1),
        frame(METADATA, 12),
    )
    with_server(lambda server: fuzz(server, frames, 1, 300), *LISTENER, f"{URL}={keys.as_uri()}")


@pytest.mark.parametrize("old_is_good", [True, False])
def test_a_file_with_other_keys_counts_soon(
    old_is_good: bool, keys: Path, with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "FILE_SECONDS", 0.1)

    async def test(server: Server) -> None:
        assert (await log_in(server, signed("second")))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
        write_key_set(keys, *["first", "second"] if old_is_good else ["second"])
        tokens = server.listeners[0]._sasl.signed_tokens  # type: ignore[union-attr]
        await until(lambda: [each.id for each in tokens.jwks.keys][-1:] == ["second"])
        assert (await log_in(server, signed("second")))[0] == 0
        assert ((await log_in(server, signed("first")))[0] == 0) is old_is_good

    with_server(test, *LISTENER, f"{URL}={keys.as_uri()}")


@pytest.fixture
def of_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert("localhost").configure_cert(context)
    return context


def test_a_token_of_an_unknown_key_has_the_keys_asked_for_again(
    with_server: Run, of_server: ssl.SSLContext, tmp_path: Path
) -> None:
    CA.cert_pem.write_to_path(tmp_path / "ca.pem")
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    trusting = f'oauthbearer.sasl.jaas.config={module} required ssl.truststore.location="{tmp_path / "ca.pem"}";'

    with web_server(of_server) as web:
        web.body = key_set("first")

        async def test(server: Server) -> None:
            web.body = key_set("second")
            assert (await log_in(server, signed("second")))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
            tokens = server.listeners[0]._sasl.signed_tokens  # type: ignore[union-attr]
            await until(lambda: [each.id for each in tokens.jwks.keys] == ["second"])
            assert (await log_in(server, signed("second")))[0] == 0
            for _ in range(5):  # not more often, whoever asks
                assert (await log_in(server, signed("third")))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert len(web.asked) == 2

        with_server(test, *LISTENER, f"{URL}={web.url}", trusting)


def test_keys_stay_while_they_cannot_be_read_again(with_server: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kohort.broker.jwks")
    with web_server() as web:
        web.body = key_set("first")

        async def test(server: Server) -> None:
            web.status = 500
            await until(lambda: len(web.asked) >= 4)
            assert (await log_in(server, signed("first")))[0] == 0
            web.status = 200
            await until(lambda: "read again" in caplog.text)

        often = ("sasl.oauthbearer.jwks.endpoint.refresh.ms=100", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=1")
        with_server(
            test, *LISTENER, f"{URL}={web.url}", *often, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=1"
        )
    assert caplog.text.count("the keys of tokens can't be read") == 1
    assert "it answers 500" in caplog.text


def test_a_slow_answer_holds_up_neither_clients_nor_the_end(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks, "ANSWER_SECONDS", 60.0)
    with web_server() as web:
        web.body = key_set("first")

        async def test(server: Server) -> None:
            web.cut = True
            await until(lambda: len(web.asked) >= 2)
            assert (await log_in(server, signed("first")))[0] == 0

        began = time.monotonic()
        with_server(test, *LISTENER, f"{URL}={web.url}", "sasl.oauthbearer.jwks.endpoint.refresh.ms=100")
        assert time.monotonic() - began < jwks.ANSWER_SECONDS


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "No such file or directory"),
        (b"[]", "isn't a JWKS"),
        (bytes(jwks.MAX_BYTES + 1), "larger than"),
    ],
)
def test_no_keys_no_start(data: bytes | None, says: str, keys: Path, with_server: Run) -> None:
    if data is None:
        keys.unlink()
    else:
        keys.write_bytes(data)
    with pytest.raises(ConfigError, match=rf"listener SASL_PLAINTEXT: {URL}=file:.*: .*{says}"):
        with_server(lambda server: asyncio.sleep(0), *LISTENER, f"{URL}={keys.as_uri()}")


def test_nobody_answers_no_start(with_server: Run) -> None:
    with web_server() as web:
        pass
    with pytest.raises(ConfigError, match=r"listener SASL_PLAINTEXT: .*refused"):
        with_server(lambda server: asyncio.sleep(0), *LISTENER, f"{URL}={web.url}")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([], f"OAUTHBEARER needs {URL}.*without a signature aren't taken"),
        ([f"{URL}=ftp://x/y"], "file, http, https"),
        ([f"{URL}=file:///a%00b"], "listener SASL_PLAINTEXT: .*null byte"),
        (
            [
                f"{URL}=https://x/y",
                "oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
                "required ssl.truststore.location='/none.pem';",
            ],
            "ssl.truststore.location=/none.pem of OAUTHBEARER: .*No such file",
        ),
        (
            [
                f"{URL}=https://x/y",
                "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required;",
            ],
            "OAUTHBEARER needs org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
        ),
    ],
)
def test_what_cannot_be_had_ends_the_start(settings: list[str], says: str, with_server: Run) -> None:
    with pytest.raises(ConfigError, match=says):
        with_server(lambda server: asyncio.sleep(0), *LISTENER, *settings)


def test_a_missing_package_ends_the_start(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigError, match=r"listener SASL_PLAINTEXT: OAUTHBEARER needs PyJWT: pip install"):
        with_server(lambda server: asyncio.sleep(0), *LISTENER, f"{URL}=file:///none")
