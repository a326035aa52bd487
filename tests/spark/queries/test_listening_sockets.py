from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from kohort.spark.queries.listening_sockets import listening_sockets

OWN = "127.0.0.1"
FOREIGN = "192.0.2.1"


def sockets_of(host: str, port: int) -> list[socket.socket]:
    return asyncio.run(listening_sockets(host, port))


@pytest.fixture
def resolves(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Names resolve to these addresses."""

    def to(*addresses: str) -> None:
        def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[object]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return to


def free_port() -> int:
    with socket.create_server((OWN, 0)) as once:
        port: int = once.getsockname()[1]
        return port


@pytest.mark.parametrize("addresses", [[OWN, FOREIGN], [FOREIGN, OWN], [OWN, OWN]])
@pytest.mark.parametrize("any_port", [True, False])
def test_only_those_addresses_of_a_name_that_this_machine_has(
    resolves: Callable[..., None], addresses: list[str], any_port: bool
) -> None:
    port = 0 if any_port else free_port()
    resolves(*addresses)
    (only,) = sockets_of("some.name", port)
    with only:
        assert only.getsockname() == (OWN, port or only.getsockname()[1])


def test_several_addresses_of_a_name_or_one_with_any_port(resolves: Callable[..., None]) -> None:
    port = free_port()
    resolves(OWN, "127.0.0.2")
    one, other = sockets_of("some.name", port)
    with one, other:
        assert {one.getsockname(), other.getsockname()} == {(OWN, port), ("127.0.0.2", port)}
    (only,) = sockets_of("some.name", 0)
    only.close()


@pytest.mark.parametrize("host", ["", FOREIGN, "2001:db8::1", "no.such.name.invalid"])
def test_all_addresses_for_a_host_of_another_machine(host: str) -> None:
    (everywhere,) = sockets_of(host, 0)
    with everywhere, socket.create_connection((OWN, everywhere.getsockname()[1])):
        assert everywhere.getsockname()[0] in ("::", "0.0.0.0")


def test_a_port_in_use_is_an_error_and_leaves_nothing_open(resolves: Callable[..., None]) -> None:
    with socket.create_server((OWN, 0)) as taken:
        port = taken.getsockname()[1]
        resolves("127.0.0.2", OWN)
        with pytest.raises(OSError, match="in use"):
            sockets_of("some.name", port)
        socket.create_server(("127.0.0.2", port)).close()
