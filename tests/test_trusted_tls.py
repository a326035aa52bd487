from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kohort.trusted_tls import trusting
from tests.certificates import Certificates


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificates:
    public = tmp_path / "public"
    public.mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(Certificates(public).ca))  # the public authorities, as OpenSSL has them
    return Certificates(tmp_path)


def test_a_file_is_trusted_alone(files: Certificates) -> None:
    for cafile in (files.ca, str(files.ca)):
        context = trusting(cafile)
        assert context.get_ca_certs() == files.client().get_ca_certs() != trusting(None).get_ca_certs()
        assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_server_trusts_no_clients_without_a_file(files: Certificates) -> None:
    assert trusting(None, ssl.Purpose.CLIENT_AUTH).get_ca_certs() == []
    assert len(trusting(files.ca, ssl.Purpose.CLIENT_AUTH).get_ca_certs()) == 1


@pytest.mark.parametrize("cafile", ["", Path(), "none.pem"])
def test_no_file_is_not_all_public_authorities(files: Certificates, cafile: str | Path) -> None:
    for purpose in (ssl.Purpose.SERVER_AUTH, ssl.Purpose.CLIENT_AUTH):
        with pytest.raises(OSError):
            trusting(cafile, purpose)


def test_a_file_that_is_no_pem(files: Certificates, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    with pytest.raises(ssl.SSLError):
        trusting(nonsense)
