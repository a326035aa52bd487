"""Listeners, and the addresses that clients connect to."""

from __future__ import annotations

import pytest

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.listeners import Endpoint, advertised_endpoint, listening_endpoint, split_endpoint


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


def test_a_controllers_listener_is_left_out() -> None:
    settings = Settings.of({
        "listeners": "CONTROLLER://:9093,INSIDE://here:9092",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROLLER:SSL",
    })  # fmt: skip

    assert listening_endpoint(settings) == Endpoint("here", 9092)


@pytest.mark.parametrize(
    ("listeners", "problem"),
    [
        ("SSL://:9092", "SSL would be SSL, but only PLAINTEXT is served"),
        ("INSIDE://:9092", "listener.security.protocol.map has no INSIDE"),
        ("PLAINTEXT://:9092,PLAINTEXT://:9093", "one listener is needed, not 2"),
    ],
)
def test_a_listener_that_can_not_be_served_is_refused(listeners: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        listening_endpoint(Settings.of({"listeners": listeners}))


def test_clients_are_told_where_the_broker_listens() -> None:
    assert advertised_endpoint(Settings(), Endpoint("127.0.0.1", 5)) == ("127.0.0.1", 5)


def test_clients_are_told_what_is_configured() -> None:
    settings = Settings.of({"advertised.listeners": "PLAINTEXT://kafka.example:19092"})

    assert advertised_endpoint(settings, Endpoint("", 5)) == ("kafka.example", 19092)


def test_port_0_of_an_advertised_listener_is_the_one_that_was_chosen() -> None:
    settings = Settings.of({"advertised.listeners": "PLAINTEXT://kafka.example:0"})

    assert advertised_endpoint(settings, Endpoint("", 5)) == ("kafka.example", 5)


def test_every_address_is_no_address() -> None:
    settings = Settings.of({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"})

    with pytest.raises(ConfigError, match="is no host"):
        advertised_endpoint(settings, Endpoint("", 5))
