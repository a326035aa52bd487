from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.addresses import parse_addresses
from kohort.client.config import ClientConfig, client_config
from kohort.client.errors import ConfigError
from kohort.client.properties import parse


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a", [("a", 9092)]),
        ("a:1, b:2,a:1,", [("a", 1), ("b", 2)]),
        ("[::1]:9093,[fe80::1]", [("::1", 9093), ("fe80::1", 9092)]),
        ("SASL_SSL://kafka.example.org:9093", [("kafka.example.org", 9093)]),
        (["a:1", "b:2,c:3", ("d", 4)], [("a", 1), ("b", 2), ("c", 3), ("d", 4)]),
    ],
)
def test_addresses_are_read_as_people_write_them(text: Any, addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == tuple(addresses)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no broker"),
        (" , ", "names no broker"),
        ("a:x", "'a:x' is not HOST:PORT"),
        (":9092", "not HOST:PORT"),
        ("a b:1", "not HOST:PORT"),
        ("a:0", "1 to 65535"),
        ("a:65536", "1 to 65535"),
        ("a:", "not HOST:PORT"),
        ("::1:9092", "in brackets"),
        ("[::1:9092", "not HOST:PORT"),
        ("[::1]9092", "not HOST:PORT"),
    ],
)
def test_addresses_that_cannot_be_are_said(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ClientConfig(bootstrap_servers=text)


def test_a_free_port_has_no_number_yet() -> None:
    assert parse_addresses("a:0", least_port=0) == (("a", 0),)
    with pytest.raises(ConfigError, match="0 to 65535"):
        parse_addresses("a:65536", least_port=0)


@given(st.text(max_size=20))
def test_no_text_is_an_address_by_accident(text: str) -> None:
    try:
        found = parse_addresses(text)
    except ConfigError:
        return
    assert all(host and 0 < port < 65536 for host, port in found)


def test_servers_are_addresses_or_a_configuration() -> None:
    assert client_config("a:1,b").addresses == (("a", 1), ("b", 9092))
    assert client_config(["a:1"]).client_id == "kohort"
    config = ClientConfig(bootstrap_servers="a", client_id="me")
    assert client_config(config) is config


def test_passwords_are_not_shown() -> None:
    config = ClientConfig(
        bootstrap_servers="a",
        security_protocol="sasl_ssl",
        sasl_username="u",
        sasl_password="hunter2",
        ssl_password="p",
    )
    assert "hunter2" not in repr(config)
    assert (config.uses_tls, config.uses_sasl, config.security_protocol) == (True, True, "SASL_SSL")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"security_protocol": "TLS"}, "security_protocol='TLS': Kohort knows PLAINTEXT, SSL"),
        ({"sasl_mechanism": "GSSAPI"}, "sasl_mechanism='GSSAPI'"),
        ({"security_protocol": "SASL_SSL"}, "needs sasl_username and sasl_password"),
        ({"sasl_username": "u"}, "doesn't authenticate"),
        ({"ssl_cafile": "ca.pem"}, "doesn't encrypt"),
        ({"security_protocol": "SSL", "ssl_keyfile": "k"}, "needs ssl_certfile"),
        ({"request_timeout_ms": 0}, "request_timeout_ms=0: must be >= 1"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms=-1"),
        ({"retry_backoff_ms": 1.5}, "a whole number"),
        ({"metadata_max_age_ms": True}, "a whole number"),
        ({"client_id": "x" * 40_000}, "client_id is longer than 32767 bytes"),
        ({"receive_message_max_bytes": 2**31}, "receive_message_max_bytes=2147483648: must be from 1024"),
    ],
)
def test_settings_that_cannot_be_are_said(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ClientConfig(bootstrap_servers="a", **settings)


def test_java_files_are_read() -> None:
    config, others = ClientConfig.from_properties(
        parse(
            """
            # made for kafka-console-consumer
            bootstrap.servers = kafka-1:9093,kafka-2:9093
            security.protocol=SASL_SSL
            ssl.truststore.type=PEM
            ssl.truststore.location=/etc/ca.pem
            ssl.keystore.type=PEM
            ssl.keystore.location=/etc/me.pem
            ssl.key.password: hush
            ssl.endpoint.identification.algorithm=
            sasl.mechanism=SCRAM-SHA-512
            sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
                username="alice" \\
                password="se\\\\"cret";
            request.timeout.ms=1000
            metrics.num.samples=2
            group.id=g
            auto.offset.reset=earliest
            """
        )
    )
    assert config == ClientConfig(
        bootstrap_servers="kafka-1:9093,kafka-2:9093",
        security_protocol="SASL_SSL",
        ssl_cafile="/etc/ca.pem",
        ssl_certfile="/etc/me.pem",
        ssl_password="hush",
        ssl_check_hostname=False,
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="alice",
        sasl_password='se"cret',
        request_timeout_ms=1000,
    )
    assert others == {"group.id": "g", "auto.offset.reset": "earliest"}


def test_librdkafka_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "metadata.broker.list=a:1\nsecurity.protocol=sasl_ssl\nssl.ca.location=/ca\nssl.certificate.location=/c\n"
        "ssl.key.location=/k\nsasl.mechanisms=PLAIN\nsasl.username=bob\nsasl.password=pw#1=\nsocket.timeout.ms=7\n"
        "topic.metadata.refresh.interval.ms=8\nenable.ssl.certificate.verification=true\n"
    )
    config, others = ClientConfig.from_file(file, bootstrap_servers="b:2", client_id=None)
    assert others == {}
    assert config == ClientConfig(
        bootstrap_servers="b:2",
        security_protocol="SASL_SSL",
        ssl_cafile="/ca",
        ssl_certfile="/c",
        ssl_keyfile="/k",
        sasl_username="bob",
        sasl_password="pw#1=",
        request_timeout_ms=7,
        metadata_max_age_ms=8,
    )


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"bootstrap.server": "a"}, r"f: unknown key 'bootstrap.server': did you mean bootstrap.servers\?"),
        ({"zzz": "a"}, "f: unknown key 'zzz'$"),
        ({}, "f: bootstrap.servers is missing"),
        ({"bootstrap.servers": "a:b"}, "f: bootstrap_servers: 'a:b' is not HOST:PORT"),
        ({"request.timeout.ms": "soon"}, "f: request.timeout.ms='soon': a whole number"),
        ({"ssl.truststore.type": "JKS"}, "f: ssl.truststore.type: JKS: Java's stores can't be read, only PEM"),
        ({"ssl.truststore.location": "/x/trust.jks"}, "trust.jks': .*only PEM"),
        ({"enable.ssl.certificate.verification": "false"}, "always verified"),
        ({"ssl.truststore.password": "x"}, "f: ssl.truststore.password: Java's stores can't be read"),
        ({"ssl.ca.pem": "-----BEGIN"}, "f: ssl.ca.pem: write it to a file"),
        ({"sasl.jaas.config": 'com.Krb5LoginModule required x="y";'}, "Krb5LoginModule can't be used"),
        ({"sasl.jaas.config": "x.PlainLoginModule required username=a;"}, "password="),
        ({"sasl.jaas.config": ""}, "nothing can't be used"),
        (
            {"sasl.jaas.config": 'x.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="a";'},
            "unsecuredLoginStringClaim_sub: tokens without a signature",
        ),
        ({"sasl.oauthbearer.config": "principal=a"}, "tokens without a signature"),
        ({"sasl.oauthbearer.method": "other"}, "oidc is wanted"),
        ({"sasl.oauthbearer.jwt.retriever.class": "x.JwtBearerJwtRetriever"}, "JwtBearerJwtRetriever can't be used"),
    ],
)
def test_what_a_file_gets_wrong_is_said_with_its_key(properties: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ClientConfig.from_properties(properties, "f")


BY_TOKEN = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OF_ISSUER = {
    "bootstrap_servers": "a:1",
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_token_url": "https://issuer/token",
    "sasl_username": "me",
    "sasl_password": "secret",
    "sasl_scope": "all",
    "sasl_token_cafile": "/ca",
    "sasl_extensions": {"cluster": "c"},
}
URL = {"sasl.oauthbearer.token.endpoint.url": "https://issuer/token"}
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@pytest.mark.parametrize(
    "properties",
    [
        {
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="me" clientSecret="secret" scope=all '
            'ssl.truststore.location="/ca" extension_cluster="c";',
        },
        {
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": "secret",
            "sasl.oauthbearer.scope": "all",
            "sasl.oauthbearer.jwt.retriever.class": "x.ClientCredentialsJwtRetriever",
            "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="other" ssl.truststore.location="/ca" '
            'extension_cluster="c";',
            "sasl.login.refresh.window.factor": "0.5",
        },
        {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "secret",
            "sasl.oauthbearer.scope": "all",
            "sasl.oauthbearer.extensions": "cluster=c",
            "https.ca.location": "/ca",
        },
    ],
    ids=["java's login module", "java's keys", "librdkafka"],
)
def test_who_issues_tokens_is_read(properties: dict[str, str]) -> None:
    config, others = ClientConfig.from_properties(BY_TOKEN | URL | properties)
    assert (config, others) == (ClientConfig(**OF_ISSUER), {})
    assert "secret" not in repr(config)
    assert hash(config)


def test_a_file_with_a_token_is_read() -> None:
    retriever = "org.apache.kafka.common.security.oauthbearer.FileJwtRetriever"
    file = {"sasl.oauthbearer.token.endpoint.url": "file:/t", "sasl.oauthbearer.jwt.retriever.class": retriever}
    module = {"sasl.jaas.config": "x.OAuthBearerLoginModule required;"}
    config, _ = ClientConfig.from_properties(BY_TOKEN | file | module)
    assert config.sasl_token_url == "file:/t"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sasl_token_url": None}, "needs sasl_token or sasl_token_url"),
        ({"sasl_token": lambda: "t"}, "one of them"),
        ({"sasl_token_url": "http://issuer/"}, "a file: or https: URL"),
        ({"sasl_password": None}, "needs sasl_username and sasl_password with an https"),
        ({"sasl_token_url": "file:/t"}, "only then"),
        ({"sasl_extensions": {"auth": "x"}}, "sasl_extensions: 'auth'"),
        ({"sasl_extensions": {"a1": "x"}}, "sasl_extensions: 'a1'"),
        ({"sasl_extensions": {"a": "x\x01"}}, "sasl_extensions: 'a'"),
        ({"sasl_mechanism": "PLAIN"}, "a token needs sasl_mechanism=OAUTHBEARER"),
    ],
)
def test_what_is_wrong_about_tokens_is_said(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ClientConfig(**{**OF_ISSUER, **settings})


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.properties: No such file"):
        ClientConfig.from_file(tmp_path / "none.properties")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="binary: not a text file"):
        ClientConfig.from_file(tmp_path / "binary")


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a = b = c ", {"a": "b = c"}),
        ("a: b\nc d", {"a": "b", "c": "d"}),
        ("a", {"a": ""}),
        (r"a\ b\=c=\u0041\t\\", {"a b=c": "A\t\\"}),
        ("! x\n\n  #y\na=1\na=2", {"a": "2"}),
        ("a=1,\\\n   2,\\\n\t3\nb=x\\\\\nc=y", {"a": "1,2,3", "b": "x\\", "c": "y"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, properties: dict[str, str]) -> None:
    assert parse(text) == properties


@given(st.text(max_size=60))
def test_any_text_has_some_properties(text: str) -> None:
    parse(text)


def test_the_files_that_the_guide_shows_say_the_same() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "connections.md").read_text()
    java, librdkafka = (
        ClientConfig.from_properties(parse(block)) for block in re.findall(r"```properties\n(.*?)```", guide, re.DOTALL)
    )
    assert java == librdkafka
    assert java[0].sasl_password == "secret"
