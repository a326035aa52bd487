"""`kohort serve --secure`, as a user calls it, and clients with what it says."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kohort.client import Admin, ClientConfig
from kohort.client.errors import AuthenticationError

from ..waiting import eventually, run
from .support import serving_fails

PATIENCE = 60
"""Seconds after which something that should happen is given up."""


class Secured:
    """A server with a directory of its own.

    Attributes:
        directory: with all that secures it.
        port: once it is ready.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def command(self, *options: str, program: str = "") -> list[str]:
        listen = () if any(each.startswith(("--listen", "--set=listeners")) for each in options) else self.listen
        serve = ["-c", program] if program else ["-m", "kohort.cli", "serve"]
        return [sys.executable, *serve, "--secure", str(self.directory), *listen, *options]

    @property
    def listen(self) -> tuple[str, ...]:
        return "--listen", f"127.0.0.1:{self.port}"

    def start(self, *options: str, program: str = "") -> str:
        """Start it; the line that says that it is ready."""
        self.process = subprocess.Popen(
            self.command(*options, program=program),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "it is neither ready nor does it end"
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.port = int(line.rpartition(":")[2])
        return line

    def end(self) -> str:
        """End it; what it wrote to standard error."""
        assert self.process is not None
        process, self.process = self.process, None
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (0, ""), err
        return err

    def fails(self, *options: str, code: int = 2) -> str:
        """What it says when it can't start."""
        done = subprocess.run(
            self.command(*options), capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment()
        )
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        return done.stderr

    def is_refused(self, *options: str, code: int = 2) -> str:
        """What a call says that can't be, without a process of its own."""
        _, _, _, _, *arguments = self.command(*options)
        found, said = serving_fails(*arguments)
        assert found == code, said
        return said

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.directory.iterdir() if path.is_file()}

    def librdkafka(self) -> dict[str, str]:
        lines = (self.directory / "librdkafka.conf").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def java(self) -> ClientConfig:
        return ClientConfig.from_file(self.directory / "client.properties", bootstrap_timeout_ms=10_000)[0]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("KOHORT_")}


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    server = Secured(tmp_path / "kafka")
    yield server
    if server.process is not None:
        server.process.kill()
        server.process.communicate()


def topics(config: ClientConfig) -> list[str]:
    async def ask() -> list[str]:
        async with Admin(config) as admin:
            return sorted(await admin.topics.list())

    return run(ask())


def test_one_command_makes_all_and_says_what_clients_need(secured: Secured) -> None:
    assert re.fullmatch(r"kohort ready on 127.0.0.1:\d+\n", secured.start())
    producer = Producer(secured.librdkafka())
    producer.produce("orders", b"two teapots")
    assert producer.flush(20) == 0
    assert topics(secured.java()) == ["orders"]
    said = secured.end()
    assert f"kcat -F {secured.directory}/librdkafka.conf -L" in said
    assert f"--command-config {secured.directory}/client.properties --list" in said
    assert secured.librdkafka()["sasl.password"] not in said  # it may be kept where others read it
    modes = {path.name: path.stat().st_mode & 0o777 for path in secured.directory.iterdir() if path.is_file()}
    assert modes == {"ca.pem": 0o644} | dict.fromkeys(
        ("ca.key", "client.properties", "librdkafka.conf", "password", "server.pem"), 0o600
    )
    assert secured.directory.stat().st_mode & 0o777 == 0o700


def test_what_it_prints_for_python_runs(secured: Secured) -> None:
    secured.start()
    port = secured.port
    blocks: dict[str, str] = {}
    said = secured.end()
    for block in re.findall(r"^# Python, (\w+).*?\n(.*?)(?=\n\n)", said, re.MULTILINE | re.DOTALL):
        blocks[block[0]] = block[1]
    secured.start("--listen", f"127.0.0.1:{port}")
    program = f"{blocks['confluent']}\nproducer.produce('t', b'1')\nassert producer.flush(20) == 0\n"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
    program = (
        f"import asyncio\nasync def main():\n    {blocks['kohort'].replace(chr(10), chr(10) + '    ')}\n"
        "    async with producer: await (await producer.send('t', b'2'))\nasyncio.run(main())\n"
    )
    program = program.replace("await (await producer.send('t', b'2'))", "await producer.send('t', b'2')")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
    assert topics(secured.java()) == ["t"]


def test_a_second_start_takes_up_all_of_it(secured: Secured) -> None:
    secured.start()
    Producer(secured.librdkafka()).list_topics("kept", timeout=20)
    files = secured.files()
    secured.end()
    secured.start()
    assert secured.files() == files
    assert topics(secured.java()) == ["kept"]
    said = secured.end()
    assert " is made" not in said


def test_nobody_else_gets_in(secured: Secured) -> None:
    secured.start()
    good = secured.librdkafka()
    for wrong in (
        {"sasl.password": "wrong-wrong"},
        {"sasl.username": "bob"},
        {"sasl.mechanism": "PLAIN"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"security.protocol": "PLAINTEXT"},
    ):
        with pytest.raises(KafkaException):
            AdminClient(good | wrong).list_topics(timeout=1.5)
    assert AdminClient(good).list_topics(timeout=20).brokers


def test_in_a_terminal_it_shows_the_password(secured: Secured) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen(secured.command(), stdout=subprocess.PIPE, stderr=end, text=True, env=environment())
    os.close(end)
    secured.process = process
    assert process.stdout is not None
    assert process.stdout.readline().startswith("kohort ready on ")
    shown = b""
    while b"The commands of kohort" not in shown:
        shown += os.read(terminal, 65_536)
    os.close(terminal)
    lines = shown.decode().replace("\r\n", "\n")
    for file in ("client.properties", "librdkafka.conf"):
        assert f"\n{(secured.directory / file).read_text()}\n" in lines


def test_logs_in_json_stay_json(secured: Secured) -> None:
    secured.start("--log-format", "json")
    lines = [json.loads(line) for line in secured.end().splitlines()]
    assert str(secured.directory / "client.properties") in [line.get("java") for line in lines]


def test_the_password_of_a_file_is_used_and_one_that_was_changed_is_told_of(secured: Secured) -> None:
    secured.directory.mkdir()
    (secured.directory / "password").write_text("a-password-of-mine\n")
    (secured.directory / "password").chmod(0o644)
    secured.start()
    assert secured.librdkafka()["sasl.password"] == "a-password-of-mine"
    assert topics(secured.java()) == []
    assert f"other users of this machine may read {secured.directory / 'password'}" in secured.end()
    (secured.directory / "client.properties").chmod(0o640)
    secured.start()
    assert f"other users of this machine may read {secured.directory / 'client.properties'}" in secured.end()
    (secured.directory / "password").write_text("another-one-by-hand\n")
    secured.start()
    with pytest.raises(AuthenticationError):
        topics(secured.java())
    assert "admin has another password than" in secured.end()
    (secured.directory / "password").unlink()
    secured.start()
    assert topics(secured.java()) == []


def test_the_certificate_follows_what_is_advertised(secured: Secured) -> None:
    secured.start()
    secured.end()
    ca = (secured.directory / "ca.pem").read_text()
    secured.start("--advertise", "kafka.example")
    secured.end()
    assert secured.librdkafka()["bootstrap.servers"].startswith("kafka.example:")
    assert (secured.directory / "ca.pem").read_text() == ca
    said = secured.fails("--listen", "kafka.nowhere.invalid:1", code=1)
    assert "is made for 127.0.0.1" in said
    assert "it wasn't for kafka.nowhere.invalid" in said


def test_the_certificate_is_looked_after_while_it_runs(secured: Secured) -> None:
    program = (
        "import sys, kohort.cli.run_server as server\nserver.RENEWAL_SECONDS = 0.1\nserver.run_plain(sys.argv[1:])\n"
    )
    secured.start(program=program)
    before = (secured.directory / "server.pem").read_text()
    (secured.directory / "server.pem").unlink()
    eventually((secured.directory / "server.pem").exists, what="it is made again")
    assert (secured.directory / "server.pem").read_text() != before
    assert topics(secured.java()) == []
    (secured.directory / "ca.pem").write_text("nonsense")
    (secured.directory / "server.pem").unlink()
    assert secured.process is not None
    assert secured.process.stderr is not None
    while "the certificate can't be looked after" not in (line := secured.process.stderr.readline()):
        assert line
    assert "ca.pem: there is no certificate in PEM" in line


def test_a_disk_that_takes_no_settings_for_clients_ends_the_start(secured: Secured) -> None:
    secured.directory.mkdir()
    (secured.directory / "librdkafka.conf").mkdir()
    assert "librdkafka.conf: Is a directory" in secured.fails(code=1)


def test_data_may_be_elsewhere(secured: Secured, tmp_path: Path) -> None:
    secured.start("--data-dir", str(tmp_path / "data"))
    assert topics(secured.java()) == []
    secured.end()
    assert (tmp_path / "data" / "meta.properties").exists()
    assert not (secured.directory / "data").exists()
    secured.start("--ephemeral")
    assert topics(secured.java()) == []
    assert not (secured.directory / "data").exists()


def test_the_port_for_metrics_may_show_the_same_certificate(secured: Secured) -> None:
    secured.start("--metrics", "0", "--metrics-certfile", str(secured.directory / "server.pem"))
    assert secured.process is not None
    assert secured.process.stderr is not None
    while not (found := re.search(r"path=/metrics.* port=(\d+)", line := secured.process.stderr.readline())):
        assert line
    trusting = ssl.create_default_context(cafile=secured.directory / "ca.pem")
    with urllib.request.urlopen(f"https://localhost:{found[1]}/healthz", timeout=PATIENCE, context=trusting) as answer:
        assert answer.status == 200


def test_listeners_and_settings_of_one_s_own(secured: Secured, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "listeners=IN://127.0.0.1:0,OUT://127.0.0.1:0\n"
        "listener.security.protocol.map=IN:SASL_SSL,OUT:SASL_SSL\nsuper.users=User:ops\n"
    )
    command = [sys.executable, "-m", "kohort.cli", "serve", "--secure", str(secured.directory), "--config", str(config)]
    secured.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert secured.process.stdout is not None
    ports = re.findall(r":(\d+)", secured.process.stdout.readline())
    assert len(ports) == 2
    for port in ports:
        assert AdminClient(secured.librdkafka() | {"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=20)


def test_a_start_that_is_killed_at_any_time_can_be_repeated(secured: Secured) -> None:
    """With SIGKILL before a file gets its name, there is what can be gone on with."""
    program = (
        "import os, pathlib, sys\nfrom kohort.cli.run_server import run_plain\n"
        "rename, left = pathlib.Path.replace, int(sys.argv[1])\n"
        "def replace(self, target):\n"
        "    global left\n"
        "    left -= self.suffix == '.tmp'\n"
        "    if left < 0: os.kill(os.getpid(), 9)\n"
        "    return rename(self, target)\n"
        "pathlib.Path.replace = replace\nrun_plain(sys.argv[2:])\n"
    )
    options = ["--secure", str(secured.directory), "--listen", "127.0.0.1:0"]
    for renamed in (0, 1, 1, 1, 1, 1):  # six files are made; each start completes one more
        done = subprocess.run(
            [sys.executable, "-c", program, str(renamed), *options], timeout=PATIENCE, check=False, capture_output=True
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
    secured.start()
    assert topics(secured.java()) == []
    assert not list(secured.directory.glob("*.tmp"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listen", "PLAINTEXT://127.0.0.1:0"], "listener PLAINTEXT would be PLAINTEXT, without encryption"),
        (["--set=listeners=SSL://127.0.0.1:0"], "would be SSL, without a password"),
        (["--set=ssl.keystore.location=/x.pem"], "has the certificate: leave one of them out"),
        (["--set=authorizer.class.name="], "needs org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        (["--set=sasl.enabled.mechanisms=PLAIN"], "needs SCRAM-SHA-512 among those of SASL_SSL"),
    ],
)
def test_options_that_contradict_it(secured: Secured, options: list[str], said: str) -> None:
    assert said in secured.is_refused(*options)
    assert not secured.directory.exists()


def test_a_directory_that_can_not_be_used(secured: Secured, tmp_path: Path) -> None:
    secured.directory.write_text("")
    assert "kafka: File exists" in secured.is_refused(code=1)
    assert "--secure: the directory's name is empty" in secured.is_refused("--secure=")
    secured.directory.unlink()
    secured.directory.mkdir()
    secured.directory.chmod(0o777)
    assert f"chmod 700 {secured.directory}" in secured.is_refused()
    secured.directory.chmod(0o700)
    (secured.directory / "password").mkdir()
    assert "password: Is a directory" in secured.is_refused(code=1)
    (secured.directory / "password").rmdir()
    (secured.directory / "ca.key").write_text("nonsense")
    assert "ca.key: there is no private key in PEM" in secured.is_refused()


def test_without_the_extra_it_says_what_to_install(secured: Secured, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'cryptography' else find(name, *a)\n"
        "import kohort.cli; sys.argv = ['kohort', 'serve', '--secure', sys.argv[1]]; kohort.cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(secured.directory)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: a secured broker needs cryptography: pip install 'kohort[security]'\n"


def test_two_that_start_at_once_make_one_authority(secured: Secured, tmp_path: Path) -> None:
    command = [*secured.command(), "--data-dir"]
    started = [
        subprocess.Popen([*command, str(tmp_path / str(n))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(2)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            servers = {"bootstrap.servers": f"127.0.0.1:{port}"}
            assert AdminClient(secured.librdkafka() | servers).list_topics(timeout=20)
    finally:
        for process in started:
            process.kill()
            process.communicate()
    assert len(list(secured.directory.glob("*.pem"))) == 2
