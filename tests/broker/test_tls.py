"""Certificates of listeners, over real sockets."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from kohort import extras
from kohort.broker.config.errors import ConfigError
from kohort.broker.tls import TlsContext, TlsSettings, peer_name, server_context
from tests.broker.certificates import CA, pem, trusting, write_stores


@pytest.fixture
def settings(tmp_path: Path) -> TlsSettings:
    keystore, truststore = write_stores(tmp_path)
    return TlsSettings(keystore=keystore, truststore=truststore)


async def handshake(context: TlsContext, client: ssl.SSLContext) -> tuple[str | None, dict[str, object]]:
    """The client's name as the server sees it, and the server's certificate as the client sees it."""
    names: asyncio.Queue[str | None] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names.put_nowait(peer_name(writer.get_extra_info("ssl_object")))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context.context)
    try:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        name = await asyncio.wait_for(names.get(), 10)
        seen = writer.get_extra_info("ssl_object").getpeercert()
        writer.close()
        return name, seen
    finally:
        server.close()


def test_clients_have_names_if_they_are_asked(settings: TlsSettings) -> None:
    async def main() -> None:
        assert (await handshake(TlsContext(settings), trusting(own="alice")))[0] is None
        for wanted in ("requested", "required"):
            context = TlsContext(replace(settings, client_auth=wanted))
            name = (await handshake(context, trusting(own="alice")))[0] or ""
            assert (name.split(",")[0], name.split(",")[-1]) == ("CN=alice", "O=Example")
        assert (await handshake(TlsContext(replace(settings, client_auth="requested")), trusting()))[0] is None

    asyncio.run(main())


def test_texts_instead_of_files(settings: TlsSettings) -> None:
    certificate = CA.issue_cert("localhost")
    texts = TlsSettings(
        key=certificate.private_key_pem.bytes().decode(),
        certificate_chain="".join(each.bytes().decode() for each in certificate.cert_chain_pems),
        trusted=CA.cert_pem.bytes().decode(),
        client_auth="required",
    )
    assert (asyncio.run(handshake(TlsContext(texts), trusting(own="bob")))[0] or "").startswith("CN=bob,")


def pkcs12_file(path: Path, certificate: trustme.LeafCert | None, password: bytes) -> Path:
    """A store of a certificate with its key, and the CA's certificate."""
    authority = x509.load_pem_x509_certificate(CA.cert_pem.bytes())
    if certificate is None:
        key, own = None, None
    else:
        key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
        own = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes())
    algorithm = BestAvailableEncryption(password)
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"own", key, own, [authority], algorithm))  # type: ignore[arg-type]
    return path


def test_pkcs12_stores(tmp_path: Path) -> None:
    settings = TlsSettings(
        keystore=pkcs12_file(tmp_path / "server.p12", CA.issue_cert("localhost"), b"one"),
        keystore_password="one",
        truststore=pkcs12_file(tmp_path / "ca.p12", None, b"two"),
        truststore_password="two",
        client_auth="required",
    )
    assert (asyncio.run(handshake(TlsContext(settings), trusting(own="bob")))[0] or "").startswith("CN=bob,")
    with pytest.raises(ConfigError, match=r"is ssl\.keystore\.password right\?"):
        server_context(replace(settings, keystore_password="wrong"))


def test_a_store_needs_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    settings = TlsSettings(keystore=pkcs12_file(tmp_path / "server.p12", CA.issue_cert("localhost"), b"one"))
    with pytest.raises(ConfigError, match=r"kohort\[security\].* or make PEM of it: openssl pkcs12 -in server\.p12"):
        server_context(settings)


def test_files_that_change_are_read_again(settings: TlsSettings, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        context = TlsContext(settings)
        assert settings.keystore is not None
        before = (await handshake(context, trusting()))[1]["serialNumber"]
        assert not context.check()
        settings.keystore.write_text("broken")
        assert not context.check()
        assert "the old ones stay" in caplog.text
        assert (await handshake(context, trusting()))[1]["serialNumber"] == before
        settings.keystore.write_text(pem(CA.issue_cert("localhost")))
        assert context.check()
        assert (await handshake(context, trusting()))[1]["serialNumber"] != before

    asyncio.run(main())


def test_what_can_not_be_is_said(settings: TlsSettings, tmp_path: Path) -> None:
    store = tmp_path / "server.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    for changes, said in (
        ({"keystore": None}, "needs a certificate"),
        ({"keystore": tmp_path / "none.pem"}, "there must be a PEM private key"),
        ({"keystore": settings.truststore}, "there must be a PEM private key"),
        ({"keystore": store}, "PKCS12 or PEM is needed: keytool"),
        ({"truststore": tmp_path / "none.pem", "client_auth": "required"}, "no PEM certificates"),
        ({"truststore": None, "client_auth": "required"}, "ssl.client.auth=required needs"),
        ({"client_auth": "maybe"}, "one of none, requested, required"),
        ({"protocols": ("SSLv3",)}, "ssl.enabled.protocols: SSLv3"),
        ({"ciphers": ("NONE_SUCH",)}, "none of NONE_SUCH is known"),
    ):
        with pytest.raises(ConfigError, match=said):
            server_context(replace(settings, **changes))  # type: ignore[arg-type]


def test_connections_are_not_renegotiated(settings: TlsSettings) -> None:
    """A client could make the server do the work of handshakes again and again."""
    context = server_context(settings)
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("broken", ["", "half", "other key"])
def test_a_change_that_fails_half_way_is_taken_up_once_it_is_whole(
    broken: str, settings: TlsSettings, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        context = TlsContext(settings, "CLIENTS")
        assert settings.keystore is not None
        before, new, other = context.context, CA.issue_cert("localhost"), CA.issue_cert("localhost")
        settings.keystore.write_text(
            {"": "", "half": pem(new)[:900], "other key": other.private_key_pem.bytes().decode() + pem(new)}[broken]
        )
        for _ in range(3):
            assert not context.check()
        assert context.context is before
        assert caplog.text.count("the old ones stay listener=CLIENTS") == 1
        await handshake(context, trusting())
        settings.keystore.write_text(pem(new))
        assert context.check()
        assert (await handshake(context, trusting()))[1]["serialNumber"]

    asyncio.run(main())


def test_cipher_suites_by_their_standard_names(settings: TlsSettings) -> None:
    suites = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305")
    context = server_context(replace(settings, ciphers=suites, protocols=("TLSv1.2",)))
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2
    names = {each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"}
    assert names == {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}
