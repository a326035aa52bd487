"""TLS between executors and the driver: who gets in, who doesn't, and what strangers leave in the log."""

from __future__ import annotations

import contextlib
import logging
import pickle
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from kohort.spark.epoch import EpochInput, OffsetRange
from kohort.spark.executor_rpc.client import RpcAddress, close_idle
from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import MAGIC
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.executor_rpc.strangers import Strangers
from kohort.spark.executor_rpc.tls import (
    ENVIRONMENT,
    DriverTls,
    _load,
    connected,
    driver_tls,
    executor_context,
    spark_secret,
)
from tests.certificates import Certificates
from tests.waiting import run, until

NOW = datetime.now(UTC)
INPUT = EpochInput(7, (OffsetRange("t", 0, 10, 20),))
SECRET = "open-sesame"


def made(secret: str | None = None) -> DriverTls:
    return driver_tls(secret, NOW)


@pytest.fixture
def server() -> Iterator[RpcServer]:
    with RpcServer(lambda *_: pytest.fail("no lookups"), tls=made()) as server:
        server.begin_epoch("0", INPUT)
        yield server
    close_idle()


def test_an_executor_of_the_run_gets_in(server: RpcServer) -> None:
    sent = pickle.loads(pickle.dumps(RpcAddress(server.address, server.token, server.handover)))
    assert sent.request_input("0", 0, 1).ranges == INPUT.ranges


def test_what_goes_over_the_connection_is_encrypted(server: RpcServer) -> None:
    plain = socket.create_connection(server.address, 5)
    with connected(executor_context(server.handover), plain) as connection:
        assert connection.version() == "TLSv1.3"
        connection.sendall(MAGIC + server.token)
        assert connection.recv(4) == MAGIC


def told(caplog: pytest.LogCaptureFixture, text: str) -> None:
    run(until(lambda: text in caplog.text))


def refused(driver: RpcAddress, why: str = "takes this process for a stranger") -> None:
    with pytest.raises(RpcError, match=why):
        driver.request_input("0", 0, 1)


def test_an_executor_of_another_run_is_refused_though_it_has_the_token(
    server: RpcServer, caplog: pytest.LogCaptureFixture
) -> None:
    refused(RpcAddress(server.address, server.token, made().handover))
    told(caplog, "to the port for executors was refused")


def test_a_driver_of_another_run_is_refused() -> None:
    with RpcServer(lambda *_: pytest.fail("no lookups"), tls=made()) as other:
        refused(RpcAddress(other.address, other.token, made().handover))


def test_an_executor_can_not_pose_as_the_driver() -> None:
    handover = made().handover
    executors = msgspec.msgpack.decode(handover[1:])
    posing = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(posing, executors["authority"], executors["certificate"], executors["key"])
    with RpcServer(lambda *_: pytest.fail("no lookups"), tls=DriverTls(posing, handover)) as other:
        refused(RpcAddress(other.address, other.token, handover), "certificate verify failed")


STRANGERS = {"nothing": b"", "plain text": MAGIC + bytes(32), "a browser": b"GET / HTTP/1.1\r\n\r\n"}


@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_stranger_gets_nothing_and_is_told_of(
    server: RpcServer, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    with socket.create_connection(server.address, 5) as connection:
        name = connection.getsockname()
        connection.sendall(sent)
        with contextlib.suppress(OSError):  # it may be refused already
            connection.shutdown(socket.SHUT_WR)
        try:
            got = connection.recv(1000)
        except ConnectionResetError:
            got = b""
        assert MAGIC not in got
        assert len(got) < 10  # at most an alert of TLS
    told(caplog, f"a connection of {name} to the port for executors was refused")
    assert RpcAddress(server.address, server.token, server.handover).request_input("0", 0, 1).ranges == INPUT.ranges


@pytest.mark.parametrize("foreign", [False, True])
def test_a_stranger_with_tls_gets_nothing(server: RpcServer, tmp_path: Path, foreign: bool) -> None:
    context = Certificates(tmp_path).client(foreign=foreign)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain = socket.create_connection(server.address, 5)
    with pytest.raises(OSError), context.wrap_socket(plain) as connection:
        connection.sendall(MAGIC + server.token)
        raise OSError(connection.recv(4))


def test_strangers_that_are_slow_keep_no_executor_waiting(server: RpcServer) -> None:
    slow = [socket.create_connection(server.address, 5) for _ in range(80)]
    assert RpcAddress(server.address, server.token, server.handover).request_input("0", 0, 1).ranges == INPUT.ranges
    for each in slow:
        each.close()


def test_many_strangers_are_a_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    strangers = Strangers(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            strangers.tell(("192.0.2.1", 1234), "a wrong token")
        now[0] = 10.0
        strangers.tell(("192.0.2.2", 1234), "a wrong token")
    assert caplog.messages == [
        "a connection of ('192.0.2.1', 1234) to the port for executors was refused: a wrong token",
        "a connection of ('192.0.2.2', 1234) to the port for executors was refused: a wrong token "
        "(and 999 more since the last such line)",
    ]


# The secret of Spark's ------------------------------------------------------------------------------------------------


def test_a_sealed_key_is_opened_with_sparks_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    tls = made(SECRET)
    assert b"PRIVATE KEY" in made().handover
    assert b"PRIVATE KEY" not in tls.handover
    monkeypatch.setenv(ENVIRONMENT, SECRET)
    with RpcServer(lambda *_: pytest.fail("no lookups"), tls=tls) as server:
        server.begin_epoch("0", INPUT)
        assert RpcAddress(server.address, server.token, server.handover).request_input("0", 0, 1).run == 1
        close_idle()


@pytest.mark.parametrize(
    ("secret", "said"),
    [(None, f"this executor has no {ENVIRONMENT}"), ("another", "spark.authenticate.secret isn't the driver's")],
)
def test_a_sealed_key_is_of_no_use_without_it(monkeypatch: pytest.MonkeyPatch, secret: str | None, said: str) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    if secret is not None:
        monkeypatch.setenv(ENVIRONMENT, secret)
    tls = made(SECRET)
    with pytest.raises(RpcError, match=said):
        executor_context(tls.handover)
    with RpcServer(lambda *_: pytest.fail("no lookups"), tls=tls) as server, pytest.raises(RpcError, match=said):
        RpcAddress(server.address, server.token, server.handover).request_input("0", 0, 1)


AUTHENTICATED = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET, "spark.master": "spark://h:7077"}


@pytest.mark.parametrize(
    ("conf", "environment", "found"),
    [
        ({}, {}, None),
        (AUTHENTICATED, {}, SECRET),
        (AUTHENTICATED, {ENVIRONMENT: "from the worker"}, "from the worker"),
        (AUTHENTICATED | {"spark.authenticate": "false"}, {}, None),
        (AUTHENTICATED | {"spark.master": "local-cluster[1,1,512]"}, {}, SECRET),
        (AUTHENTICATED | {"spark.master": "yarn"}, {}, None),
        (AUTHENTICATED | {"spark.master": "k8s://https://h"}, {}, None),
    ],
)
def test_sparks_secret_where_python_workers_have_it(
    conf: dict[str, str], environment: dict[str, str], found: str | None
) -> None:
    assert spark_secret(conf, environment) == found
