"""The authority and the certificate of a secured broker."""

from __future__ import annotations

import datetime
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from kohort.broker.config import ConfigError
from kohort.broker.secured.authority import AUTHORITY_DAYS, SERVER_DAYS, CertificateFiles
from kohort.certificates import Authority, Period, certificate_pem, key_pem, new_key, signed

NOW = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
HOSTS = {"localhost", "127.0.0.1", "::1", "kafka.example"}


def days(number: float) -> datetime.timedelta:
    return datetime.timedelta(days=number)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[CertificateFiles]:
    """All of them, made."""
    found = CertificateFiles(tmp_path)
    assert len(found.make(HOSTS, NOW)) == 2
    yield found
    assert not list(tmp_path.glob("*.tmp"))


def server(files: CertificateFiles) -> x509.Certificate:
    return x509.load_pem_x509_certificate(files.server.read_bytes())


def why(notes: list[str]) -> str:
    (note,) = notes
    return note.rpartition(": ")[2]


def test_what_is_made_is_for_the_hosts_and_signed_by_the_authority(files: CertificateFiles) -> None:
    made, authority = server(files), x509.load_pem_x509_certificate(files.ca.read_bytes())
    made.verify_directly_issued_by(authority)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))} == HOSTS
    assert made.not_valid_after_utc == NOW + days(SERVER_DAYS)
    assert authority.not_valid_after_utc == NOW + days(AUTHORITY_DAYS)
    ssl.create_default_context(cafile=files.ca)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.server)


def test_only_the_authority_s_certificate_is_for_everybody_to_read(files: CertificateFiles) -> None:
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in files.ca.parent.iterdir()}
    assert modes == {"ca.pem": "0o644", "ca.key": "0o600", "server.pem": "0o600"}


def test_what_fits_stays(files: CertificateFiles) -> None:
    before = {path: path.read_bytes() for path in files.ca.parent.iterdir()}
    assert files.make({"localhost"}, NOW + days(SERVER_DAYS - 31)) == []
    assert {path: path.read_bytes() for path in files.ca.parent.iterdir()} == before


def test_a_certificate_that_is_about_to_expire_is_made_anew(files: CertificateFiles) -> None:
    ca, key = files.ca.read_bytes(), server(files).public_key()
    assert why(files.make(HOSTS, NOW + days(SERVER_DAYS - 29))) == "it expired on 2027-05-01"
    assert server(files).not_valid_after_utc == NOW + days(2 * SERVER_DAYS - 29)
    assert server(files).public_key() != key
    assert files.ca.read_bytes() == ca


def test_a_certificate_for_other_hosts_is_made_anew(files: CertificateFiles) -> None:
    assert why(files.make({"localhost", "other.example", "10.0.0.7"}, NOW)) == "it wasn't for 10.0.0.7, other.example"
    assert files.make({"localhost", "10.0.0.7"}, NOW) == []


def test_a_certificate_that_can_not_be_used_is_made_anew(files: CertificateFiles) -> None:
    good = files.server.read_text()
    certificate = good[good.index("-----BEGIN CERTIFICATE") :]
    other = Authority("other", new_key())
    foreign = signed(other, Period(NOW, NOW + days(300)), name="x", key=other.key)
    early = signed(other, Period(NOW + days(3), NOW + days(300)), name="x", key=other.key)
    for text, reason in (
        ("", "it was broken"),
        (good[: len(good) // 3], "it was broken"),
        (certificate, "it was broken"),
        (key_pem(new_key()) + certificate, "its key was another's"),
        (key_pem(other.key) + certificate_pem(foreign), f"it wasn't signed by {files.ca}"),
        (key_pem(other.key) + certificate_pem(early), f"it wasn't signed by {files.ca}"),
    ):
        files.server.write_text(text)
        assert why(files.make(HOSTS, NOW)) == reason
        assert files.make(HOSTS, NOW) == []


def test_a_crash_leaves_what_the_next_start_completes(tmp_path: Path) -> None:
    """Files are written in the order: key, certificate, the broker's; under other names first."""
    files = CertificateFiles(tmp_path)
    for lost in (["server.pem"], ["server.pem", "ca.pem"], ["server.pem", "ca.pem", "ca.key"]):
        files.make(HOSTS, NOW)
        for name in lost:
            (tmp_path / name).rename(tmp_path / f"{name}.tmp")
        assert files.make(HOSTS, NOW)
        server(files).verify_directly_issued_by(x509.load_pem_x509_certificate(files.ca.read_bytes()))
        assert not list(tmp_path.glob("*.tmp"))


def test_the_authority_s_key_is_needed_only_to_sign(files: CertificateFiles) -> None:
    files.ca_key.unlink()
    assert files.make(HOSTS, NOW) == []
    with pytest.raises(ConfigError, match=r"server.pem must be made \(it wasn't for new\), but .*ca.key, which signs"):
        files.make({"new"}, NOW)


def test_an_authority_that_has_expired_ends_the_start_and_before_that_is_warned_of(files: CertificateFiles) -> None:
    end = NOW + days(AUTHORITY_DAYS)
    renewed, warned = sorted(files.make(HOSTS, end - days(10)))[::-1]
    assert "server.pem is made for" in renewed
    assert re.search("ca.pem expires on .*: move .*ca.pem and .*ca.key away, and give clients the new one", warned)
    assert len(files.make(HOSTS, end - days(10))) == 1
    with pytest.raises(ConfigError, match=r"ca.pem has expired on"):
        files.make(HOSTS, end)


def test_files_that_belong_to_others_end_the_start(files: CertificateFiles) -> None:
    for path, text, said in (
        (files.ca, "nonsense", "ca.pem: there is no certificate in PEM"),
        (files.ca_key, "nonsense", "ca.key: there is no private key in PEM"),
        (files.ca_key, key_pem(new_key()), "ca.key isn't the key of"),
        (files.ca_key, key_pem(ed25519.Ed25519PrivateKey.generate()), "of EC or RSA"),  # type: ignore[arg-type]
    ):
        good = path.read_text()
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            files.make(HOSTS, NOW)
        path.write_text(good)
    files.ca.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="isn't a text file"):
        files.make(HOSTS, NOW)


def test_an_authority_of_one_s_own_signs(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name.from_rfc4514_string("CN=ours,OU=trust,O=Example")
    own = signed(Authority(name, key), Period(NOW, NOW + days(100)), name=name, key=key)
    files = CertificateFiles(tmp_path)
    files.ca.write_text(certificate_pem(own))
    files.ca_key.write_text(key_pem(key))
    assert why(files.make(HOSTS, NOW)) == "there was none"
    server(files).verify_directly_issued_by(own)
    assert server(files).not_valid_after_utc == own.not_valid_after_utc


def test_a_name_that_no_certificate_can_have(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no certificate can be for"):
        CertificateFiles(tmp_path).make({"größe"}, NOW)
