"""`kohort serve --console`, as a user calls it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.cli.test_serve import PATIENCE, Start, arguments, ended, environment, fails, ready, start

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
    process = start(
        *("--secure", str(tmp_path / "kafka"), "--listen", "127.0.0.1:0", "--advertise", "kafka.invalid:9092"),
        *("--console", "--console-port", "0"),
        KOHORT_CONSOLE_TOKEN="not of this console",
    )
    address = console_of(process)
    with urllib.request.urlopen(f"{address}topics") as answer:
        assert 'name="name"' in answer.read().decode()


def only_in_the_console(directory: Path, *lines: str) -> str:
    """A PYTHONPATH with which the console's process runs these lines first, and the broker's doesn't."""
    directory.mkdir()
    body = "\n    ".join(lines)
    (directory / "sitecustomize.py").write_text(f"import os, sys\nif 'console' in sys.orig_argv:\n    {body}\n")
    return os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_what_lies_in_the_working_directory_is_not_run(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jinja2.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    path = only_in_the_console(tmp_path / "path", "print('a word from elsewhere', flush=True)")
    process = start("--listen=127.0.0.1:0", "--ephemeral", "--console", "--console-port=0", PYTHONPATH=path)
    assert console_of(process).startswith("http://127.0.0.1:")


def test_without_its_console_the_broker_goes_on(start: Start, tmp_path: Path) -> None:
    path = only_in_the_console(tmp_path / "path", "os._exit(1)")
    process = start("--listen=127.0.0.1:0", "--ephemeral", "--console", PYTHONPATH=path)
    ready(process)
    process.terminate()
    code, _, err = ended(process)
    assert code == 0
    assert "the console doesn't start" in err
    assert "the broker goes on without" in err


@pytest.mark.parametrize("starting", [True, False])
def test_ctrl_c_is_for_the_broker_which_ends_the_console(tmp_path: Path, starting: bool) -> None:
    waits = f"open({str(tmp_path / 'there')!r}, 'x').close(); os.read(0, 1); os._exit(0)"
    more = {"PYTHONPATH": only_in_the_console(tmp_path / "path", waits)} if starting else {}
    with subprocess.Popen(
        arguments("--listen=127.0.0.1:0", "--ephemeral", "--console", "--console-port=0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(TMPDIR=str(tmp_path), **more),
        start_new_session=True,
    ) as process:
        try:
            address = "" if starting else console_of(process)
            deadline = time.monotonic() + PATIENCE
            while starting and not (tmp_path / "there").exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            if not starting:
                ready(process)
            os.killpg(process.pid, signal.SIGINT)
            code, out, err = ended(process)
        finally:
            process.kill()
    assert (code, out) == (0, "")
    assert "the console" not in err
    assert "Traceback" not in err
    if not starting:
        until_gone(address)


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
