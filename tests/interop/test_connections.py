"""Whatever comes in at the port, the server lives, and clients that behave don't notice."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader

from ..waiting import eventually
from .clients import LIBRARIES, Client, Message
from .servers import Server

NewTopic = Callable[..., str]


def connect(server: Server) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=20)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def header(key: int, version: int, correlation_id: int = 7, header_version: int = 1) -> bytes:
    return RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id="raw"
    ).encode(header_version)


def api_versions(correlation_id: int) -> bytes:
    return frame(header(18, 0, correlation_id) + ApiVersionsRequest().encode(0))


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """The correlation id of the next response, and the rest of it."""
    size = int.from_bytes(exactly(connection, 4), "big")
    read, end = ResponseHeader.read(body := exactly(connection, size), 0, 0)
    return read.correlation_id, body[end:]


def exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        assert part, f"hung up after {len(found)} of {size} bytes"
        found += part
    return found


def works(server: Server, topic: str) -> None:
    LIBRARIES[0].produce(server.bootstrap, topic, [Message(b"still here")])
    assert LIBRARIES[0].consume(server.bootstrap, topic)[-1].value == b"still here"


def hangs_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1024) == b""
    except ConnectionError:
        return True


HOSTILE = {
    "garbage": bytes(range(256)) * 300,
    "a frame of 2 GiB": b"\x7f\xff\xff\xff" + b"x" * 100,
    "a frame of a negative length": b"\xff\xff\xff\xff" + b"x" * 100,
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100f8010000f40303") + b"\x05" * 240,
    "an empty frame": frame(b""),
    "a frame too short for a header": frame(b"\x00\x12"),
    "an API that is not there": frame(header(999, 0)),
    "a version that is not there": frame(header(3, 99)),
    "a body that is cut": frame(header(3, 4) + b"\x00\x00\x00\x05\x00"),
    "an array of 2 billion topics": frame(header(3, 4) + b"\x7f\xff\xff\xff" + b"x" * 50),
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE)
def test_bytes_that_make_no_sense_end_their_connection_alone(sent: bytes, server: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    with connect(server) as neighbour, connect(server) as hostile:
        hostile.sendall(sent)
        assert hangs_up(hostile)
        neighbour.sendall(api_versions(1))
        assert answer(neighbour)[0] == 1
    works(server, topic)


def test_an_unknown_version_of_api_versions_is_answered(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(frame(header(18, 99, header_version=2) + ApiVersionsRequest().encode(4)))
        correlation_id, body = answer(connection)
        response, _ = ApiVersionsResponse.read(body, 0, 0)
    assert (correlation_id, response.error_code) == (7, 35)


def test_half_frames_wait_and_hold_nobody_up(server: Server, new_topic: NewTopic) -> None:
    request = api_versions(5)
    with ExitStack() as stack:
        halves = [(n, stack.enter_context(connect(server))) for n in range(1, len(request))]
        for size, connection in halves:
            connection.sendall(request[:size])
        works(server, new_topic())
        for size, connection in halves:
            connection.sendall(request[size:])
            assert answer(connection)[0] == 5


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"".join(api_versions(n) for n in range(200)))
        assert [answer(connection)[0] for _ in range(200)] == list(range(200))


@pytest.fixture
def idle(server: Server) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        connections = []
        for number in range(600):
            connections.append(stack.enter_context(connect(server)))
            connections[-1].sendall(api_versions(number))
            assert answer(connections[-1])[0] == number
        yield connections


def test_clients_work_beside_six_hundred_idle_connections(
    library: Client, server: Server, idle: list[socket.socket], new_topic: NewTopic
) -> None:
    topic, messages = new_topic(), [Message(b"%d" % i) for i in range(1000)]
    library.produce(server.bootstrap, topic, messages)
    assert [m.value for m in library.consume(server.bootstrap, topic)] == [m.value for m in messages]
    for number, connection in enumerate(idle):
        connection.sendall(api_versions(number))
    assert [answer(connection)[0] for connection in idle] == list(range(600))


@pytest.mark.parametrize("own_server", [{"socket.request.max.bytes": "100000"}], indirect=True, ids=["100 kB at most"])
def test_a_frame_over_socket_request_max_bytes_ends_the_connection(own_server: Server) -> None:
    with connect(own_server) as connection:
        connection.sendall((100_001).to_bytes(4, "big") + bytes(1000))
        assert hangs_up(connection)
    with connect(own_server) as connection:
        connection.sendall(api_versions(1))
        assert answer(connection)[0] == 1


@pytest.mark.parametrize("own_server", [{"connections.max.idle.ms": "500"}], indirect=True, ids=["500 ms"])
def test_idle_connections_are_closed(own_server: Server) -> None:
    with connect(own_server) as connection:
        connection.sendall(api_versions(1))
        assert answer(connection)[0] == 1
        eventually(lambda: hangs_up(connection), what="the server has closed it")
