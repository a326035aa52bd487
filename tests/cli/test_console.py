"""`kohort console`, as a user calls it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from kohort.cli.console_access import ConsoleAccess
from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.console.audit import AuditLog
from kohort.testing import Broker
from tests.certificates import Certificates
from tests.cli.support import invoke


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A console in a process of its own, and its address."""
    command = [sys.executable, "-m", "kohort.cli", "console", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out: IO[str] | None = process.stdout
            assert out is not None
            yield process, out.readline().strip()
        finally:
            process.kill()


def test_it_says_where_it_is_shows_the_cluster_and_ends_by_a_signal() -> None:
    with Broker() as broker:
        asyncio.run(commit(broker.bootstrap_servers))
        with started("-b", broker.bootstrap_servers) as (process, address):
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{address}group?id=billing") as answer:
                assert ">billing</h1>" in answer.read().decode()
            with urllib.request.urlopen(f"{address}groups/events") as page:  # which stays open
                assert page.readline().startswith(b"retry:")
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 143
            assert process.stderr is not None
            assert process.stderr.read() == ""


async def commit(servers: str) -> None:
    async with Admin(servers) as admin:
        await admin.topics.create("orders")
        await admin.group_offsets.alter("billing", {TopicPartition("orders", 0): 0})


def test_it_reads_a_secured_cluster_by_a_clients_settings() -> None:
    with (
        Broker(secure=True) as broker,
        started("--config", str(broker.security.admin.java_file)) as (_, address),
        urllib.request.urlopen(f"{address}topics") as answer,
    ):
        assert "0 topics" in answer.read().decode()


def test_others_than_this_machine_are_told_of() -> None:
    with (
        Broker() as broker,
        started("-b", broker.bootstrap_servers, "--host", "0.0.0.0", "--no-login") as (process, address),
    ):
        assert address.startswith("http://0.0.0.0:")
        assert process.stderr is not None
        assert "others than this machine may reach it" in process.stderr.readline()


@pytest.mark.parametrize(("write", "token", "warned"), [(True, None, True), (True, b"t", False), (False, None, False)])
def test_changes_by_any_account_of_this_machine_are_warned_of(write: bool, token: bytes | None, warned: bool) -> None:
    """The password in the console's settings is one that other accounts can't read."""
    access = ConsoleAccess(token=token, by_user=False, tls=None, write=write, audit=AuditLog(), uses_sasl=True)
    assert ("any account of this machine" in access.warning("127.0.0.1")) is warned


def test_addresses_of_ip_version_6_are_in_brackets() -> None:
    with Broker() as broker:
        servers = f"{broker.bootstrap_servers}, [::1]:1"
        with started("-b", servers) as (_, address), urllib.request.urlopen(f"{address}groups") as answer:
            assert f"<span>{servers}</span>" in answer.read().decode()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--host", "203.0.113.1", "--no-login"], 1, "can't listen on 203.0.113.1, port 8090"),
        (["--host", "0.0.0.0"], 2, "--token-file FILE asks for a token"),
        (["--login", "scram"], 2, "the cluster must ask for names and passwords"),
        (["--login", "oidc"], 2, "--login oidc: there is scram"),
        (["--token-file", "/none"], 2, "--token-file /none: No such file"),
        (["--keyfile", "key.pem"], 2, "--keyfile needs --certfile"),
        (["--stores-token-file", "token"], 2, "want --stores"),
        (["--stores", "--stores-certfile", "c.pem"], 2, "--stores-certfile needs --stores-cafile"),
        (["--stores", "--stores-cafile", "/none"], 2, "--stores-cafile /none: no PEM certificates"),
        (["--stores", "--stores-cafile", ""], 2, "--stores-cafile : no PEM certificates"),
        (["--stores", "--stores-token-file", "/none"], 2, "--stores-token-file /none: No such file"),
        (["--audit-log", "/none/audit"], 1, "--audit-log /none/audit: No such file"),
        (["--every", "0"], 2, "--every"),
        (["--allow-host", "https://console.example"], 2, "isn't a name"),
    ],
)
def test_wrong_calls(arguments: list[str], code: int, said: str) -> None:
    with Broker() as broker:
        found = invoke("console", *arguments, servers=broker.bootstrap_servers)
    assert found.exit_code == code
    assert said in found.stderr


def test_a_cluster_that_does_not_answer_ends_it() -> None:
    found = invoke("console", "--timeout", "0.3", servers="127.0.0.1:1")
    assert found.exit_code == 1
    assert "127.0.0.1:1" in found.stderr


def test_a_token_of_the_environment_is_asked_for_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = Certificates(tmp_path)
    tls = ["--certfile", str(certificates.cert), "--keyfile", str(certificates.key)]
    monkeypatch.setenv("KOHORT_CONSOLE_TOKEN", "0123456789abcdef")
    with (
        Broker() as broker,
        started("-b", broker.bootstrap_servers, *tls, "--audit-log", str(tmp_path / "a")) as (_, address),
    ):
        assert address.startswith("https://127.0.0.1:")
        with urllib.request.urlopen(f"{address}groups", context=certificates.client()) as answer:
            assert answer.url.endswith("/login?next=%2Fgroups")
            assert "Secure" in answer.headers["Set-Cookie"]


def test_wrong_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOHORT_CONSOLE_TOKEN", "short")
    found = invoke("console", servers="127.0.0.1:1")
    assert (found.exit_code, "KOHORT_CONSOLE_TOKEN: a token is one word" in found.stderr) == (2, True)
    monkeypatch.setenv("KOHORT_CONSOLE_TOKEN", "0123456789abcdef")
    found = invoke("console", "--no-login", servers="127.0.0.1:1")
    assert (found.exit_code, "--no-login lets everybody in" in found.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--schema-registry", "registry:8081"], "give its address"),
        (["--schema-registry", "https://ada:x@registry"], "say the password in auth"),
        (["--schema-registry-ca", "ca.pem"], "want --schema-registry"),
        (["--schema-registry", "https://registry", "--schema-registry-auth", "no-such-file"], "No such file"),
        (["--schema-registry", "https://registry", "--schema-registry-ca", "no-such-file"], "No such file"),
    ],
)
def test_a_schema_registry_that_is_none_is_refused(options: list[str], why: str) -> None:
    result = invoke("console", *options)
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())
