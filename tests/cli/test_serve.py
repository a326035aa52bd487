"""`kohort serve`, as a user calls it."""

from __future__ import annotations

import inspect
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kohort.cli.run_server import ServeOptions, read_plain
from kohort.cli.serve import command as typer_command

from .support import serving_fails

PATIENCE = 60
"""Seconds after which something that should happen is given up."""

Start = Callable[..., subprocess.Popen[str]]


def arguments(*options: str) -> list[str]:
    return [sys.executable, "-m", "kohort.cli", "serve", *options]


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("KOHORT_")} | more


def fails(*options: str, code: int, **more: str) -> str:
    """What it says when it can't start."""
    done = subprocess.run(
        arguments(*options), capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment(**more)
    )
    assert (done.returncode, done.stdout) == (code, "")
    return done.stderr


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers, and leaves neither them nor their temporary directories."""
    started: list[subprocess.Popen[str]] = []

    def begin(*options: str, stdin: int | None = None, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            arguments(*options),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**{"TMPDIR": str(tmp_path), **more}),
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> int:
    """Wait until it is ready, and return its port."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE)[0], "it is neither ready nor does it end"
    line = process.stdout.readline()
    found = re.fullmatch(r"kohort ready on (\S+):(\d+)\n", line)
    assert found, line + (process.stderr.read() if process.stderr is not None and not line else "")
    return int(found[2])


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def children_of(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_it_says_that_it_is_ready_and_accepts_connections(start: Start) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral")

    port = ready(process)

    socket.create_connection(("127.0.0.1", port), PATIENCE).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_good_order(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    process = start("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
    ready(process)

    process.send_signal(number)

    assert ended(process)[:2] == (0, "")
    assert ".kafka_cleanshutdown" in children_of(tmp_path)


def test_it_may_end_with_standard_input(start: Start, tmp_path: Path) -> None:
    read, write = os.pipe()
    process = start("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--ends-with-stdin", stdin=read)
    os.close(read)
    ready(process)
    os.write(write, b"what is read doesn't count\n")

    os.close(write)

    code, out, err = ended(process)
    assert (code, out) == (0, "")
    assert "stopping: standard input has ended" in err
    assert ".kafka_cleanshutdown" in children_of(tmp_path)


@pytest.mark.parametrize("stdin", ["</dev/null", "<pyproject.toml", "<&-"])
def test_it_ends_with_nothing_but_a_pipe(stdin: str) -> None:
    command = ["sh", "-c", f'exec "$@" {stdin}', "sh", *arguments("--ephemeral", "--ends-with-stdin")]

    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=Path(__file__).parents[2]
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "--ends-with-stdin: standard input is no pipe" in done.stderr


def test_temporary_data_is_gone_in_the_end(start: Start, tmp_path: Path) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral")
    ready(process)
    assert children_of(tmp_path)

    process.terminate()

    assert ended(process)[0] == 0
    assert children_of(tmp_path) == []


def test_data_stays(start: Start, tmp_path: Path) -> None:
    for _ in range(2):
        process = start("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
        ready(process)
        process.terminate()
        assert ended(process)[0] == 0

    assert "meta.properties" in children_of(tmp_path)


def test_a_data_directory_has_one_server(start: Start, tmp_path: Path) -> None:
    ready(start("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)))

    said = fails("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), code=1)

    assert said.startswith(f"error: {tmp_path}: another server uses this data directory: stop it, or give")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        said = fails("--listen", f"127.0.0.1:{port}", "--ephemeral", code=1, TMPDIR=str(tmp_path))

    assert said.splitlines()[-1] == (
        f"error: 127.0.0.1:{port} is in use: stop what listens there, or choose another port (0 takes a free one)"
    )
    assert children_of(tmp_path) == []


def test_a_directory_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    said = fails("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file" / "data"), code=1)

    assert said == f"error: {tmp_path}/file/data: Not a directory\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "where shall data be kept? Give --data-dir DIR, or --ephemeral to throw it away in the end"),
        (["--ephemeral", "--data-dir", "x"], "--ephemeral and --data-dir exclude each other"),
        (["--ephemeral", "--listen", "9092"], "'9092' isn't HOST:PORT, with a port between 0 and 65535"),
        (["--ephemeral", "--metrics", "here"], "'here' isn't HOST:PORT, with a port between 0 and 65535"),
        (["--ephemeral", "--metrics-token-file", "x"], "--metrics-token-file x: No such file or directory"),
        (["--ephemeral", "--metrics-certfile", sys.executable], "a PEM certificate and its key, without a password"),
        (["--ephemeral", "--set", "num.partition=1"], "there is no such key; did you mean num.partitions?"),
        (["--ephemeral", "--log-level", "loud"], "--log-level loud: one of debug, info, warning, error is needed"),
        (["--ephemeral", "--log-format", "xml"], "--log-format xml: one of text, json is needed"),
        (["--ephemeral", "--advertise", "0.0.0.0"], "0.0.0.0:0 is no host"),
        (["--ephemeral", "--colour"], "No such option: --colour"),
        (["--set", "log.dirs=a,b"], "one directory is possible, not 2"),
        (
            ["--ephemeral", "--listen", "127.0.0.1:0", "--set", "listeners=SASL_SSL://:9093"],
            "listener SASL_SSL: a listener with SSL needs a certificate",
        ),
        (
            ["--ephemeral", "--listen", ":0", "--set", "listeners=SASL_SSL://:9093,PLAINTEXT://:9092"],
            "has SASL_SSL, PLAINTEXT; say which, as SASL_SSL://:0, with commas between several",
        ),
        (
            ["--ephemeral", "--advertise", "a:1", "--set", "listeners=SASL_SSL://:9093,PLAINTEXT://:9092"],
            "SASL_SSL, PLAINTEXT can't have the same port; leave it out, or say SASL_SSL://a:1",
        ),
    ],
)  # fmt: skip
def test_a_call_that_can_not_be(options: list[str], said: str) -> None:
    code, complaint = serving_fails(*options)
    assert code == 2 and said in complaint


def test_a_file_that_is_not_there() -> None:
    assert fails("--config", "/nowhere/server.properties", code=1) == (
        "error: /nowhere/server.properties: No such file or directory\n"
    )


def test_settings_come_from_file_environment_and_command_line(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\nnum.io.threads=8\n")
    process = start("--config", str(config), "--set", "broker.rack=r1", KOHORT_NODE_ID="17")
    ready(process)

    process.terminate()
    code, _, said = ended(process)

    assert code == 0
    assert "node=17" in said
    assert "num.io.threads" in said
    assert (tmp_path / "data" / "meta.properties").exists()


def test_logs_may_be_json(start: Start) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral", "--log-format", "json")
    port = ready(process)

    process.terminate()

    events = [json.loads(line) for line in ended(process)[2].splitlines()]
    assert any(event.get("port") == port for event in events)


def test_logs_may_be_fewer(start: Start) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral", "--log-level", "error")
    ready(process)

    process.terminate()

    assert ended(process) == (0, "", "")


def test_metrics_are_served(start: Start) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral", "--metrics", "127.0.0.1:0")
    ready(process)
    assert process.stderr is not None
    logged = ""
    while not (found := re.search(r"path=/metrics.* port=(\d+)|port=(\d+) path=/metrics", logged)):
        logged += process.stderr.readline()

    with urllib.request.urlopen(f"http://127.0.0.1:{found[1] or found[2]}/metrics", timeout=PATIENCE) as answer:
        assert b"kohort_connections 0.0" in answer.read()


def test_metrics_are_served_to_those_with_the_token(start: Start, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    process = start("--listen", "127.0.0.1:0", "--ephemeral", "--metrics", "0", "--metrics-token-file", str(token))
    ready(process)
    assert process.stderr is not None
    logged = ""
    while not (found := re.search(r"path=/metrics.* port=(\d+)|port=(\d+) path=/metrics", logged)):
        logged += process.stderr.readline()
    url = f"http://127.0.0.1:{found[1] or found[2]}/metrics"

    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(url, timeout=PATIENCE)
    request = urllib.request.Request(url, headers={"Authorization": "Bearer 0123456789abcdef"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert b"kohort_connections 0.0" in answer.read()
    assert "0123456789abcdef" not in logged


def test_a_second_signal_ends_it_at_once(start: Start, tmp_path: Path) -> None:
    process = start("--listen", "127.0.0.1:0", "--ephemeral")
    port = ready(process)
    with socket.create_connection(("127.0.0.1", port), PATIENCE):
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGTERM)  # whichever comes second; it may also have stopped in good order
            time.sleep(0.001)

    assert ended(process)[0] in (0, 128 + signal.SIGTERM)
    assert children_of(tmp_path) == []


def test_help_has_an_example() -> None:
    done = subprocess.run(arguments("--help"), capture_output=True, text=True, check=True, timeout=PATIENCE)

    assert "Usage: kohort serve [OPTIONS]" in done.stdout
    assert "kohort serve --ephemeral" in done.stdout


def test_what_the_server_does_not_need_is_not_loaded() -> None:
    program = (
        "import sys; from kohort.cli.run_server import read_plain; import uvloop, kohort.broker.server; "
        "heavy = {'typer', 'rich', 'numpy', 'pyarrow', 'numba', 'prometheus_client', 'cramjam'} & set(sys.modules); "
        "assert not heavy, heavy"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)


# Arguments


def test_both_ways_in_have_the_same_options() -> None:
    options = {name: parameter.default for name, parameter in inspect.signature(typer_command).parameters.items()}

    assert {name: default or None for name, default in options.items()} == {
        field.name: field.default or None for field in ServeOptions.__dataclass_fields__.values()
    }


def test_plain_arguments_are_read_without_typer() -> None:
    given = ["--listen", ":0", "--set", "a=1", "--set=b=2=3", "--ephemeral", "--log-level=debug"]

    assert read_plain(given) == ServeOptions(listen=":0", set=("a=1", "b=2=3"), ephemeral=True, log_level="debug")


@pytest.mark.parametrize(
    "given",
    [["--help"], ["-h"], ["here"], ["--listen"], ["--listen", "--ephemeral"], ["--ephemeral=yes"], ["--nope", "1"]],
    ids=" ".join,
)
def test_other_arguments_are_left_to_typer(given: list[str]) -> None:
    assert read_plain(given) is None
