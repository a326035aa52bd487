"""Passwords go to executors apart from the configuration that Spark sends them."""

from __future__ import annotations

import pickle
import ssl

import pytest

from kohort.client.config import ClientConfig
from kohort.spark.errors import ProgramError
from kohort.spark.program.settings import AppSettings
from kohort.spark.reading.secrets import secrets_of, with_secrets, without_secrets

CONFIG = ClientConfig(
    bootstrap_servers="kafka-1:9093,[::1]:9094",
    security_protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="billing",
    sasl_password="sesame",
    ssl_certfile="client.pem",
    ssl_password="open",
)


def test_they_come_apart_and_together() -> None:
    secrets = secrets_of(CONFIG)
    assert secrets == {"sasl_password": "sesame", "ssl_password": "open"}
    bare = without_secrets(CONFIG)
    pickled = pickle.dumps(bare)
    assert b"sesame" not in pickled
    assert b"open" not in pickled
    assert with_secrets(pickle.loads(pickled), secrets) == CONFIG


def test_where_there_is_none_nothing_is_done() -> None:
    plain = ClientConfig(bootstrap_servers="kafka-1")
    assert secrets_of(plain) == {}
    assert without_secrets(plain) is plain
    assert with_secrets(plain, {}) is plain


def test_they_are_in_no_text() -> None:
    settings = AppSettings.of("app", CONFIG)
    for text in (repr(CONFIG), str(CONFIG), repr(settings)):
        assert "sesame" not in text
        assert "open" not in text


def test_a_context_can_not_go_to_executors() -> None:
    config = ClientConfig(bootstrap_servers="k", security_protocol="SSL", ssl_context=ssl.create_default_context())
    with pytest.raises(ProgramError, match="an ssl_context can't be sent to executors: name files"):
        AppSettings.of("app", config)
