"""Who may ask an HTTP port, and what is wrong with the files that say so."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from kohort.http_access import OPEN, HttpAccess, is_loopback, warn_if_exposed
from tests.certificates import Certificates

TOKEN = "0123456789abcdef"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return file


def test_nothing_is_asked_for_without_options() -> None:
    access = HttpAccess.load("--metrics-")
    assert access == OPEN
    assert access.is_open
    assert access.allows(None)
    assert access.authorization is None
    assert access.scheme == "http"


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Bearer {TOKEN}".encode(), True),
        (f"Bearer {TOKEN}0", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Bearer {TOKEN[:-1]}\udcff", False),
        ("Bearer ", False),
        (f"Basic0 {TOKEN}", False),
        (TOKEN, False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_token_is_let_in(token_file: Path, header: str | bytes | None, allowed: bool) -> None:
    access = HttpAccess.load("--metrics-", token_file=token_file)
    assert not access.is_open
    assert access.allows(header) is allowed


def test_another_port_is_asked_with_the_same_token(token_file: Path) -> None:
    access = HttpAccess.load("--metrics-", token_file=token_file)
    assert access.allows(access.authorization)
    assert TOKEN not in repr(access)


def test_certificates(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    access = HttpAccess.load("x_", certfile=files.cert, keyfile=files.key)
    assert access.server is not None
    assert access.server.verify_mode is ssl.CERT_NONE
    assert access.is_open
    access = HttpAccess.load("x_", certfile=files.cert, keyfile=files.key, cafile=files.ca)
    assert access.server is not None
    assert access.client is not None
    assert access.server.verify_mode is ssl.CERT_REQUIRED
    assert access.client.check_hostname
    assert not access.is_open
    assert access.scheme == "https"


def test_a_file_of_authorities_is_trusted_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, public = Certificates(tmp_path), tmp_path / "public"
    public.mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(Certificates(public).ca))  # the public authorities, as OpenSSL has them
    access = HttpAccess.load("x_", certfile=files.cert, keyfile=files.key, cafile=files.ca)
    assert access.client is not None and access.server is not None
    assert len(access.client.get_ca_certs()) == len(access.server.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"token_file": "none"}, r"--metrics-token-file .*/none: No such file or directory"),
        ({"token_file": "short"}, r"--metrics-token-file .*/short: a token is one word of at least 16 letters"),
        ({"token_file": "words"}, r"a token is one word of at least 16 letters"),
        ({"keyfile": "key.pem"}, r"--metrics-keyfile needs --metrics-certfile"),
        ({"cafile": "ca.pem"}, r"--metrics-cafile needs --metrics-certfile"),
        ({"certfile": "cert.pem"}, r"--metrics-certfile .*/cert.pem: a PEM certificate and its key, .* are needed"),
        ({"certfile": "none"}, r"--metrics-certfile .*/none: a PEM certificate and its key"),
        ({"certfile": "cert.pem", "keyfile": "key.pem", "cafile": "short"}, r"--metrics-cafile .*: no PEM certif"),
        ({"certfile": "cert.pem", "keyfile": "key.pem", "cafile": ""}, r"--metrics-cafile .*: no PEM certif"),
    ],
)
def test_files_that_can_not_be_used(tmp_path: Path, given: dict[str, str], said: str) -> None:
    Certificates(tmp_path)
    (tmp_path / "short").write_text("sesame")
    (tmp_path / "words").write_text("open sesame, open sesame")
    with pytest.raises(ValueError, match=said):
        HttpAccess.load("--metrics-", **{name: tmp_path / file for name, file in given.items()})


def test_a_token_that_others_may_read_is_told(token_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    HttpAccess.load("--metrics-", token_file=token_file)
    assert not caplog.records
    token_file.chmod(0o644)
    HttpAccess.load("--metrics-", token_file=token_file)
    assert f"chmod 600 {token_file}" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.3.2.1", True), ("", False), ("0.0.0.0", False),
     ("::", False), ("broker.example", False), ("192.0.2.1", False)],
)  # fmt: skip
def test_what_others_reach(host: str, loopback: bool, token_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert is_loopback(host) is loopback
    with caplog.at_level(logging.WARNING, "kohort.http"):
        warn_if_exposed("/metrics", host, HttpAccess.load("", token_file=token_file), "a token")
        assert not caplog.records
        warn_if_exposed("/metrics", host, OPEN, "a token")
        assert ("whoever reaches the port may read it; protect it by a token" in caplog.text) is not loopback
