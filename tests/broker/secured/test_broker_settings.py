"""What a secured broker is configured as, and what contradicts it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.security_keys import STANDARD_AUTHORIZER
from kohort.broker.secured.broker_settings import hosts, secured

LISTENERS = {"listeners": "SASL_SSL://127.0.0.1:0"}


def made(**more: object) -> Settings:
    """The settings; dots are written as two underscores."""
    given = LISTENERS | {key.replace("__", "."): value for key, value in more.items()}
    return secured(Settings.of(given), Path("/d"), Path("/d/server.pem"), "admin")


def test_tls_scram_and_access_rules() -> None:
    settings = made()
    assert settings.text("ssl.keystore.location") == "/d/server.pem"
    assert settings.names("sasl.enabled.mechanisms") == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert settings.text("authorizer.class.name") == STANDARD_AUTHORIZER
    assert settings.text("super.users") == "User:admin"


def test_what_adds_to_it_stays() -> None:
    settings = made(
        listeners="SASL_SSL://:0,INSIDE://:0",
        listener__security__protocol__map="SASL_SSL:SASL_SSL,INSIDE:SASL_SSL",
        super__users="User:ops; User:admin",
        sasl__enabled__mechanisms="PLAIN,SCRAM-SHA-512",
        authorizer__class__name=STANDARD_AUTHORIZER,
    )
    assert settings.text("super.users") == "User:ops;User:admin"
    assert settings.names("sasl.enabled.mechanisms") == ("PLAIN", "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"listeners": "SASL_SSL://:0,PLAINTEXT://:1"}, "listener PLAINTEXT would be PLAINTEXT, without encryption"),
        ({"listeners": "SASL_PLAINTEXT://:0"}, "would be SASL_PLAINTEXT, without encryption"),
        ({"listeners": "SSL://:0"}, "would be SSL, without a password"),
        ({"authorizer.class.name": ""}, "authorizer.class.name (a program): --secure /d needs org.apache"),
        ({"ssl.keystore.location": "/x"}, "ssl.keystore.location (a program): --secure /d has the certificate"),
        ({"listener.name.sasl_ssl.ssl.keystore.key": "x"}, "--secure /d has the certificate: leave one of them out"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "needs SCRAM-SHA-512 among those of SASL_SSL, for admin to log in"),
        ({"listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN"}, "needs SCRAM-SHA-512"),
    ],
)
def test_what_contradicts_it(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        secured(Settings.of(LISTENERS | given), Path("/d"), Path("/d/server.pem"), "admin")
    assert said in str(raised.value)


def test_the_hosts_of_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Box")
    monkeypatch.setattr(socket, "getfqdn", lambda: "box.example")
    here = {"localhost", "127.0.0.1", "::1", "box", "box.example"}
    assert hosts(Settings.of(LISTENERS)) == here
    assert hosts(Settings.of({"listeners": "SASL_SSL://:9092"})) == here
    assert hosts(
        Settings.of(
            {"listeners": "SASL_SSL://10.0.0.7:9092,X://[2001:DB8:0::1]:1"}
            | {
                "listener.security.protocol.map": "SASL_SSL:SASL_SSL,X:SASL_SSL",
                "advertised.listeners": "SASL_SSL://kafka.exämple:1",
            }
        )
    ) == here | {"10.0.0.7", "2001:db8::1", "kafka.xn--exmple-cua"}


def test_a_host_that_no_certificate_can_have() -> None:
    with pytest.raises(ConfigError, match="no certificate can be for the host"):
        hosts(Settings.of(LISTENERS | {"advertised.listeners": f"SASL_SSL://{'ö' * 70}:1"}))
