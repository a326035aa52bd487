"""Listeners: their names, protocols and addresses, and what clients are told."""

from __future__ import annotations

import socket

import pytest

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.listeners import (
    Endpoint,
    ListenerConfig,
    SecurityProtocol,
    configured_listeners,
    split_endpoint,
)


def only(**settings: object) -> ListenerConfig:
    (listener,) = configured_listeners(Settings.of({name.replace("_", "."): value for name, value in settings.items()}))
    return listener


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("localhost:9092", ("localhost", 9092)),
        (":0", ("", 0)),
        ("[::1]:80", ("::1", 80)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
    ],
)
def test_an_endpoint_is_a_host_and_a_port(text: str, endpoint: tuple[str, int]) -> None:
    assert split_endpoint(text) == endpoint


@pytest.mark.parametrize("text", ["localhost", "9092", "localhost:", "localhost:65536", "::1:9092", "a:-1", "a:٣"])
def test_anything_else_is_no_endpoint(text: str) -> None:
    with pytest.raises(ValueError, match=r"isn't HOST:PORT|goes in brackets"):
        split_endpoint(text)


def test_listeners_have_the_protocols_of_their_names() -> None:
    settings = Settings.of({
        "listeners": "CONTROLLER://:9093,inside://here:9092,SASL_SSL://:9094",
        "advertised.listeners": "SASL_SSL://kafka.example:19094",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT, controller:SSL, SASL_SSL:sasl_ssl",
    })  # fmt: skip

    assert configured_listeners(settings) == [
        ListenerConfig("INSIDE", SecurityProtocol.PLAINTEXT, Endpoint("here", 9092)),
        ListenerConfig("SASL_SSL", SecurityProtocol.SASL_SSL, Endpoint("", 9094), Endpoint("kafka.example", 19094)),
    ]


def test_protocols_say_what_they_are_made_of() -> None:
    assert [(protocol.tls, protocol.sasl) for protocol in SecurityProtocol] == [
        (False, False), (True, False), (False, True), (True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listeners": ""}, "at least one listener is needed"),
        ({"listeners": "INSIDE://:9092"}, "listener.security.protocol.map has no INSIDE"),
        ({"listeners": "SSL://:1,ssl://:2"}, "2 listeners have the name SSL"),
        ({"listeners": "SSL://:1,PLAINTEXT://:1"}, "2 listeners have the address :1"),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "'PLAINTEXT:TLS' isn't NAME:PROTOCOL, with one of PLAIN"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "0.0.0.0:9092 is no host"),
        ({"advertised.listeners": "SSL://a:9092"}, "listeners has no SSL"),
        ({"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://b:1"}, "PLAINTEXT is there twice"),
        ({"listener.name.sssl.ssl.client.auth": "required"}, "listener.name.sssl.* listeners has no SSSL"),
    ],
)
def test_listeners_that_can_not_be_had(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        configured_listeners(Settings.of(settings))


def test_free_ports_are_not_the_same_address() -> None:
    assert len(configured_listeners(Settings.of({"listeners": "SSL://:0,PLAINTEXT://:0"}))) == 2


def test_clients_are_told_where_the_broker_listens() -> None:
    assert only(listeners="PLAINTEXT://127.0.0.1:0").advertised(5) == ("127.0.0.1", 5)


def test_clients_are_told_this_machines_name_if_it_listens_everywhere() -> None:
    assert only(listeners="PLAINTEXT://:9092").advertised(9092) == (socket.getfqdn(), 9092)


@pytest.mark.parametrize(("given", "told"), [(19092, 19092), (0, 5)])
def test_clients_are_told_what_is_configured(given: int, told: int) -> None:
    listener = only(advertised_listeners=f"PLAINTEXT://kafka.example:{given}")

    assert listener.advertised(5) == ("kafka.example", told)


def test_what_is_set_for_a_listener_comes_first_and_for_its_mechanism_before_that() -> None:
    settings = Settings.of({
        "ssl.client.auth": "none",
        "listener.name.sasl_ssl.ssl.client.auth": "required",
        "connections.max.reauth.ms": 1,
        "plain.connections.max.reauth.ms": 2,
        "listener.name.sasl_ssl.connections.max.reauth.ms": 3,
        "listener.name.sasl_ssl.plain.connections.max.reauth.ms": 4,
    })  # fmt: skip

    assert settings.for_listener("SSL").text("ssl.client.auth") == "none"
    assert settings.for_listener("SASL_SSL").text("ssl.client.auth") == "required"
    reauth = "connections.max.reauth.ms"
    assert [
        settings.for_listener(*names).int(reauth)
        for names in (("SSL",), ("SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-256"), ("SASL_SSL", "PLAIN"))
    ] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("listener.name.ssl.ssl.client.auth", "maybe", "'maybe' is none of required, requested, none"),
        ("listener.name.SSL.ssl.client.auth", "none", "lower case"),
        ("listener.name.ssl.ssl.cleint.auth", "none", "no key of a listener; did you mean ssl.client.auth?"),
        ("listener.name.ssl.plain.sasl.jaas.config", "PlainLoginModule maybe hunter2;", "^[^2]*the value can't be"),
        ("listener.name.ssl.plain.ssl.client.auth", "none", "ssl.client.auth is no key of a listener"),
    ],
)
def test_what_is_set_for_a_listener_is_checked(name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Settings.of({name: value})
