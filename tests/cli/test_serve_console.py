"""`kohort serve --console`, as a user calls it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.cli.test_serve import PATIENCE, Start, ended, fails, ready, start

__all__ = ["start"]


def console_of(process: subprocess.Popen[str]) -> str:
    """The address of the console, from the broker's log."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"console address=(\S+)", line):
            return found[1]
    raise AssertionError("there is no console")


def until_gone(address: str) -> None:
    port = int(address.rstrip("/").rpartition(":")[2])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.02)
    raise AssertionError("the console is still there")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_console_is_there_as_long_as_the_broker(start: Start, number: signal.Signals) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral", "--console", "--console-port=0", "--console-write")
    address = console_of(process)
    ready(process)
    with urllib.request.urlopen(f"{address}topics") as answer:
        assert "Create a topic" in answer.read().decode()

    process.send_signal(number)

    code, _, err = ended(process)
    assert code == (0 if number == signal.SIGTERM else -number)
    assert "the console has ended" not in err
    until_gone(address)


def test_of_a_secured_broker_it_asks_for_a_user(start: Start, tmp_path: Path) -> None:
    process = start("--secure", str(tmp_path / "kafka"), "--listen", "127.0.0.1:0", "--console", "--console-port", "0")
    address = console_of(process)
    with urllib.request.urlopen(f"{address}topics") as answer:
        assert 'name="name"' in answer.read().decode()


def test_a_port_that_is_taken_ends_the_start() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = fails("--listen", "127.0.0.1:0", "--ephemeral", "--console", "--console-port", port, code=1)
    assert f"can't listen on 127.0.0.1, port {port}" in said
    assert "the console doesn't start" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--console-write"], "need --console"),
        (["--console", "--console-port", "0.0.0.0:1"], "a port is wanted, from 0 to 65535"),
    ],
)
def test_wrong_options(options: list[str], said: str) -> None:
    assert said in fails("--ephemeral", *options, code=2)
