"""How commands that are clients run, end and fail."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import typer

from kohort.cli.client.arguments import parse_duration, parse_partitions
from kohort.cli.client.options import client_config
from kohort.cli.client.run import run
from kohort.client.config import ClientConfig
from kohort.client.errors import ConfigError, ConnectionLostError
from kohort.client.frame_reader import HTTP_ANSWER
from kohort.client.no_broker import NO_ANSWER_YET, no_broker_yet, saying_once, telling
from kohort.client.types import TopicPartition
from kohort.number_ranges import numbers, partitions_text
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.cli.administering import Cluster, cluster

PATIENCE = 30.0
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def raising(error: Exception) -> Callable[[], Coroutine[Any, Any, None]]:
    async def body() -> None:
        raise error

    return body


async def forever() -> None:
    await asyncio.Event().wait()


def test_what_the_body_returns_comes_back() -> None:
    async def body() -> int:
        return 3

    assert run(body, 1.0) == 3


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("linger_ms=-1"), 2, "linger_ms=-1"),
        (ConnectionLostError("here:9092: gone"), 1, "here:9092: gone"),
        (KafkaError(ErrorCode.NON_EMPTY_GROUP), 1, "the group has members; stop them first (NON_EMPTY_GROUP)"),
        (KafkaError(ErrorCode.INVALID_CONFIG, "No such key."), 1, "No such key (INVALID_CONFIG)"),
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), 1, "MESSAGE_TOO_LARGE (10)"),
    ],
)
def test_failures_have_a_line_and_a_code(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as end:
        run(raising(error))
    assert end.value.exit_code == code
    assert capsys.readouterr().err == f"error: {said}\n"


def test_what_takes_too_long_is_ended() -> None:
    begun = time.monotonic()
    with pytest.raises(typer.Exit) as end:
        run(forever, 0.01)
    assert end.value.exit_code == 1
    assert time.monotonic() - begun < PATIENCE


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_body_and_is_the_exit_code(which: signal.Signals) -> None:
    before = signal.getsignal(which)
    closed = []

    async def body() -> None:
        os.kill(os.getpid(), which)
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            closed.append(True)

    with pytest.raises(typer.Exit) as end:
        run(body)
    assert (end.value.exit_code, closed) == (128 + which, [True])
    assert signal.getsignal(which) is before


def test_a_body_that_takes_the_signal_as_its_end_has_ended_well() -> None:
    async def body() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            return "closed"
        return "never"

    assert run(body) == "closed"


def test_servers_that_cannot_be_are_a_wrong_call() -> None:
    with pytest.raises(typer.Exit) as end:
        client_config("here:port", None)
    assert end.value.exit_code == 2


def test_an_empty_option_is_not_another_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as end:
        client_config("", None)
    assert end.value.exit_code == 2
    assert "--bootstrap-server is empty" in capsys.readouterr().err


def test_what_is_wrong_with_a_connection_is_said_before_the_time_is_over(
    capsys: pytest.CaptureFixture[str], at: Cluster
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        here = f"127.0.0.1:{silent.getsockname()[1]}"
        said = at.__class__(here).fails("topics", "list", "--timeout", "0.6")
    assert "no broker answered within 600 ms" in said
    assert f"it can't be reached: {here}" in said


def test_what_is_waited_for_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Not when the time is over, and with what helps; once, however often it is tried."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    config = client_config(f"127.0.0.1:{port}", None, 15.0)
    assert config.on_no_broker is not None
    config.on_no_broker("refused")
    config.on_no_broker("refused")
    assert capsys.readouterr().err == (
        f"waiting, for 15 s: no broker answers at 127.0.0.1:{port} (refused); "
        f"`kohort serve --ephemeral --listen 127.0.0.1:{port}` starts one here\n"
    )
    with Terminal(f"127.0.0.1:{port}", "topics", "list", "--timeout", "600") as terminal:
        terminal.read_until("starts one here")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(PATIENCE) == 130


LOGIN = {"security_protocol": "SASL_SSL", "sasl_username": "admin", "sasl_password": "secret"}


@pytest.mark.parametrize(
    ("servers", "settings", "advice"),
    [
        ("localhost", {}, "`kohort serve --ephemeral` starts one here"),
        ("[::1]:9093", {}, "`kohort serve --ephemeral --listen [::1]:9093` starts one here"),
        ("kafka.example:9092", {}, "is it running, and can it be reached from here?"),
        ("localhost", LOGIN, "`kohort serve --secure DIR` starts one here"),
        ("localhost:9093", LOGIN, "`kohort serve --secure DIR --listen 127.0.0.1:9093` starts one here"),
        ("localhost", {"security_protocol": "SSL"}, "is it running, and can it be reached from here?"),
        (
            "localhost",
            LOGIN | {"security_protocol": "SASL_PLAINTEXT"},
            "is it running, and can it be reached from here?",
        ),
    ],
)
def test_how_to_start_a_broker(servers: str, settings: dict[str, Any], advice: str) -> None:
    assert no_broker_yet(ClientConfig(bootstrap_servers=servers, **settings), "x").endswith(f"; {advice}")


def test_a_port_of_an_http_server_is_not_told_to_be_free() -> None:
    said = no_broker_yet(ClientConfig(bootstrap_servers="localhost:8090"), f"localhost:8090: {HTTP_ANSWER}")
    assert said.endswith(f"{HTTP_ANSWER}); a broker's port is another, mostly 9092")


def test_the_real_reason_is_said_after_there_was_none_yet() -> None:
    """A slow login isn't told to start a broker; and what then keeps it from one isn't kept back."""
    said: list[str] = []
    tell = saying_once(ClientConfig(bootstrap_servers="localhost"), said.append).on_no_broker
    assert tell is not None
    for reason in (NO_ANSWER_YET, NO_ANSWER_YET, "refused", "lost", NO_ANSWER_YET):
        tell(reason)
    assert said == [
        "no broker has answered yet at localhost:9092",
        "no broker answers at localhost:9092 (refused); `kohort serve --ephemeral` starts one here",
    ]


@pytest.mark.parametrize("waiting", [telling, saying_once])
def test_a_program_that_wants_to_know_is_told_too(waiting: Callable[..., ClientConfig]) -> None:
    reasons: list[str] = []
    said: list[str] = []
    config = ClientConfig(bootstrap_servers="kafka.example", on_no_broker=reasons.append)
    tell = waiting(config, said.append).on_no_broker
    assert tell is not None
    tell("refused")
    tell("lost")
    assert reasons == ["refused", "lost"]
    assert said[0] == no_broker_yet(config, "refused")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90s", 90_000), ("1.5h", 5_400_000), ("250ms", 250),
        ("PT1H30M", 5_400_000), ("p1dt0.5s", 86_400_500), ("P2W", 1_209_600_000),
    ],
)  # fmt: skip
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text, "--by-duration") == ms


@pytest.mark.parametrize("text", ["", "1", "h", "P", "PT", "-1h", "1y"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.Exit):
        parse_duration(text, "--by-duration")


def test_partitions_are_read_as_they_are_shown() -> None:
    topics, partitions = parse_partitions(["flights:0,3-5", "weather", "ports:1"], "--topic")
    assert topics == ["weather"]
    assert partitions_text(partitions) == "flights: 0, 3-5; ports: 1"
    assert partitions[-1] == TopicPartition("ports", 1)
    assert numbers([]) == ""


# In a terminal


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, servers: str, *arguments: str) -> None:
        self._end, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kohort.cli", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"KOHORT_BOOTSTRAP_SERVERS": servers, "TERM": "xterm", "COLUMNS": "160"},
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)

    def read_until(self, text: str) -> None:
        """Read until something is shown, whatever its colours."""
        end = time.monotonic() + PATIENCE
        while text not in COLOURS.sub("", self.seen):
            left = end - time.monotonic()
            assert left > 0 and select.select([self._end], [], [], left)[0], self.seen
            self.seen += os.read(self._end, 65536).decode(errors="replace")

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._end, text.encode())


def test_in_a_terminal_one_is_asked_before_something_is_deleted(at: Cluster) -> None:
    at.ok("topics", "create", "flights")
    for answer, code, left in (("n\n", 1, ["flights"]), ("y\n", 0, [])):
        with Terminal(at.servers, "topics", "delete", "flights") as terminal:
            terminal.read_until("Delete flights with all records? [y/N]")
            terminal.type(answer)
            assert terminal.process.wait(PATIENCE) == code
        assert [topic["name"] for topic in at.json("topics", "list")] == left


def test_in_a_terminal_what_is_watched_stays_in_place(at: Cluster) -> None:
    at.ok("topics", "create", "t", "--partitions", "99")
    at.ok("groups", "reset-offsets", "readers", "--topic", "t", "--to-latest", "--execute")
    with Terminal(at.servers, "groups", "describe", "readers", "--watch") as terminal:
        terminal.read_until("classic group, Empty, 0 members")
        terminal.read_until("more lines than fit")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(PATIENCE) == 0
