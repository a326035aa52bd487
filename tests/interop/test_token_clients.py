"""Clients of others that log in with a signed token (OAUTHBEARER); and whose token isn't good stays out."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.tools import MAVEN

from ..signed_tokens import claims, public_pem, signed, write_key_set
from ..waiting import eventually
from .java.jvm import Tools
from .secured import ALLOWED_URLS, SecureKohort
from .topics import create_topic


@pytest.fixture
def topic(secured: SecureKohort, request: pytest.FixtureRequest) -> str:
    return create_topic(AdminClient({"bootstrap.servers": secured.bootstrap}), request.node.name)


def librdkafka(secured: SecureKohort, token: str) -> dict[str, Any]:
    """The settings of librdkafka."""
    return {
        "bootstrap.servers": f"localhost:{secured.ports['SASL_SSL']}",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(secured.house.ca),
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda config: (token, time.time() + 3600),
    }


def test_librdkafka(secured: SecureKohort, topic: str) -> None:
    settings = librdkafka(secured, signed())
    producer = Producer(settings)
    producer.produce(topic, b"hello")
    assert producer.flush(20) == 0
    consumer = Consumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    (message,) = consumer.consume(1, 20)
    consumer.close()
    assert message.value() == b"hello"


def by_public_key() -> str:
    """A token that takes the public key for a shared secret."""
    parts = [{"alg": "HS256", "kid": "first", "typ": "JWT"}, claims()]
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    signature = hmac.digest(public_pem(), text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def unsigned() -> str:
    parts = [{"alg": "none", "kid": "first"}, claims()]
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


BAD = {
    "its signature is wrong": lambda: signed("second", headers={"kid": "first"}),
    "none of the known keys is for it: key 'second', algorithm 'RS256'": lambda: signed("second"),
    "it has expired": lambda: signed(exp=int(time.time()) - 60, iat=0),
    "its audience (aud) is 'another'": lambda: signed(aud="another"),
    "its issuer (iss) is 'https://another.example'": lambda: signed(iss="https://another.example"),
    "none of the known keys is for it: key 'first', algorithm 'none'": unsigned,
    "none of the known keys is for it: key 'first', algorithm 'HS256'": by_public_key,
}


def refused(secured: SecureKohort, token: str) -> bool:
    """Whether a token isn't taken, as librdkafka sees it."""
    errors: list[KafkaError] = []
    admin = AdminClient({**librdkafka(secured, token), "error_cb": errors.append})

    def is_told() -> str:
        try:
            admin.poll(0)
            admin.list_topics(timeout=1)
            return "taken"
        except KafkaException:
            admin.poll(1)
            return "refused" if KafkaError._AUTHENTICATION in [error.code() for error in errors] else ""

    return eventually(is_told, what="the token is taken or refused") == "refused"


@pytest.mark.parametrize("reason", BAD)
def test_a_token_that_is_not_good(secured: SecureKohort, reason: str) -> None:
    before = len(secured.stderr())
    assert refused(secured, BAD[reason]())
    assert f'reason="{reason}' in secured.stderr()[before:]


def test_a_key_that_was_rotated_in(secured: SecureKohort) -> None:
    assert refused(secured, signed("third"))
    write_key_set(secured.house.keys, "first", "third")
    eventually(lambda: not refused(secured, signed("third")), what="the new key counts")


def context(secured: SecureKohort) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(secured.house.ca))


class Aio(AioTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return signed()


def test_aiokafka(secured: SecureKohort, topic: str) -> None:
    async def main() -> None:
        settings = {
            "bootstrap_servers": f"localhost:{secured.ports['SASL_SSL']}",
            "security_protocol": "SASL_SSL",
            "ssl_context": context(secured),
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": Aio(),
        }
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings) as consumer:
            assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"hello"

    asyncio.run(main())


class Python(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, made: str) -> None:
        self._made = made

    def token(self) -> str:
        return self._made


def test_kafka_python(secured: SecureKohort, topic: str) -> None:
    def admin(token: str, **settings: Any) -> KafkaAdminClient:
        return KafkaAdminClient(
            bootstrap_servers=f"localhost:{secured.ports['SASL_SSL']}",
            security_protocol="SASL_SSL",
            ssl_context=context(secured),
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Python(token),
            **settings,
        )

    client = admin(signed())
    assert topic in client.list_topics()
    client.close()
    with pytest.raises(PythonError):
        admin(signed(aud="another"), api_version_auto_timeout_ms=2000)


CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer"


def test_java_with_a_token_in_a_file(secured: SecureKohort, topic: str, tmp_path: Path) -> None:
    MAVEN.require()
    token, settings = tmp_path / "token", tmp_path / "client.properties"
    token.write_text(signed())
    settings.write_text(
        f"""
        security.protocol=SASL_SSL
        ssl.truststore.type=PEM
        ssl.truststore.location={secured.house.ca}
        sasl.mechanism=OAUTHBEARER
        sasl.jaas.config={OAUTHBEARER}.OAuthBearerLoginModule required;
        sasl.login.callback.handler.class={OAUTHBEARER}.OAuthBearerLoginCallbackHandler
        sasl.oauthbearer.jwt.retriever.class={OAUTHBEARER}.FileJwtRetriever
        sasl.oauthbearer.token.endpoint.url={token.as_uri()}
        """
    )
    where = ("--bootstrap-server", f"localhost:{secured.ports['SASL_SSL']}", "--topic", topic)
    tools = Tools([f"{ALLOWED_URLS}={token.as_uri()}"])
    try:
        by = ("--command-config", str(settings))
        produced = tools.run(CONSOLE_PRODUCER, *where, *by, stdin="a\nb\n")
        assert produced.code == 0, produced.err
        consumed = tools.run(CONSOLE_CONSUMER, *where, *by, "--from-beginning", "--max-messages", "2")
        assert consumed.lines == ["a", "b"], consumed.err
    finally:
        tools.close()
