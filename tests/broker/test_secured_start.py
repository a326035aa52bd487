"""A listener that can't be had as it is configured ends the start with a sentence, and nothing listens."""

from __future__ import annotations

import asyncio
import datetime
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.listeners import configured_listeners
from kohort.broker.secret import kept_secret
from kohort.broker.server import SECRET, Server
from kohort.cli.run_server import ServeOptions, _settings
from kohort.protocol.messages.metadata import MetadataRequest
from tests.broker.certificates import CA, pem, trusting, write_stores
from tests.broker.conftest import Run, serving
from tests.broker.raw import RawClient
from tests.broker.test_tls import pkcs12_file

CERTIFICATE = CA.issue_cert("localhost")
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'


def encrypted(directory: Path) -> Path:
    key = load_pem_private_key(CERTIFICATE.private_key_pem.bytes(), None)
    path = directory / "encrypted.pem"
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"right"))
    path.write_bytes(sealed + CERTIFICATE.cert_chain_pems[0].bytes())
    return path


def of_another_key(directory: Path) -> Path:
    path = directory / "mismatched.pem"
    path.write_bytes(CA.issue_cert("localhost").private_key_pem.bytes() + CERTIFICATE.cert_chain_pems[0].bytes())
    return path


def written(name: str, data: bytes) -> Callable[[Path], Path]:
    def write(directory: Path) -> Path:
        (directory / name).write_bytes(data)
        return directory / name

    return write


def store(directory: Path) -> Path:
    return pkcs12_file(directory / "server.p12", CERTIFICATE, b"right")


def without_key(directory: Path) -> Path:
    return pkcs12_file(directory / "ca.p12", None, b"right")


BROKEN = "there must be a PEM private key and its certificates"
ALONE = CERTIFICATE.cert_chain_pems[0].bytes()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
@pytest.mark.parametrize(
    ("keystore", "settings", "said"),
    [
        (lambda directory: directory / "none.pem", (), BROKEN),
        (lambda directory: directory, (), BROKEN),
        (written("broken.pem", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), (), BROKEN),
        (written("empty.pem", b""), (), BROKEN),
        (written("certificate.pem", ALONE), (), BROKEN),
        (written("key.pem", CERTIFICATE.private_key_pem.bytes()), (), BROKEN),
        (of_another_key, (), "mismatch"),
        (encrypted, (), "ssl.key.password if the key is encrypted"),
        (encrypted, ("ssl.key.password=wrong",), "ssl.key.password if the key is encrypted"),
        (store, (), r"is ssl\.keystore\.password right\?"),
        (store, ("ssl.keystore.password=wrong",), r"is ssl\.keystore\.password right\?"),
        (without_key, ("ssl.keystore.password=right",), BROKEN),
        (written("broken.p12", b"0\x82"), (), r"is ssl\.keystore\.password right\?"),
        (written("old.jks", b"\xfe\xed\xfe\xed"), (), "PKCS12 or PEM is needed"),
    ],
    ids=["missing", "directory", "broken", "empty", "no key", "no certificate", "another key", "encrypted", "password",
         "no store password", "store password", "store without key", "broken store", "JKS"],
)  # fmt: skip
def test_a_keystore_that_can_not_be_used(
    protocol: str, keystore: Callable[[Path], Path], settings: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    refused(tmp_path, said, f"listeners={protocol}://:0", f"ssl.keystore.location={keystore(tmp_path)}", *settings)


def refused(tmp_path: Path, said: str, *settings: str, environ: dict[str, str] | None = None) -> None:
    common = () if any("sasl.enabled" in each for each in settings) else ("sasl.enabled.mechanisms=PLAIN",)
    with pytest.raises(ConfigError, match=said) as raised:
        Server(Settings.load(None, environ or {}, (*common, *settings)), data_dir=tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert not any(word in str(raised.value) for word in ("right\n", "wrong", "secret"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("ssl.truststore.location=/nowhere/ca.pem",), "ssl.truststore: no PEM certificates"),
        (("ssl.truststore.certificates=nothing",), "ssl.truststore: no PEM certificates"),
        (("ssl.truststore.certificates=\xe9",), "ssl.truststore: no PEM certificates"),
        ((), "needs the certificates that clients' are signed by"),
    ],
    ids=["missing", "broken", "not ASCII", "none"],
)
def test_a_truststore_that_can_not_be_used(settings: tuple[str, ...], said: str, tmp_path: Path) -> None:
    keystore, _ = write_stores(tmp_path)
    refused(
        tmp_path, said, "listeners=SSL://:0", f"ssl.keystore.location={keystore}", "ssl.client.auth=required", *settings
    )


SASL = "listeners=SASL_PLAINTEXT://:0"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ((SASL, "sasl.enabled.mechanisms=GSSAPI"), "GSSAPI isn't served"),
        ((SASL, "sasl.enabled.mechanisms=plain"), "plain isn't served; there are PLAIN"),
        ((SASL, "sasl.enabled.mechanisms=PLAIN"), "PLAIN has no users"),
        ((SASL, "sasl.enabled.mechanisms="), "nobody could authenticate"),
        ((SASL, "sasl.enabled.mechanisms=PLAIN", f"listener.name.other.plain.sasl.jaas.config={JAAS}"), "has no OTHER"),
        ((SASL, "sasl.jaas.config=PlainLoginModule required;"), "PLAIN needs org.apache"),
        ((SASL, "sasl.jaas.config=nothing"), "sasl.jaas.config"),
        (("listeners=CLIENTS://:0",), "listener.security.protocol.map has no CLIENTS"),
        (("listeners=CLIENTS://:0", "listener.security.protocol.map=CLIENTS:TLS"), "isn't NAME:PROTOCOL"),
        (("listeners=",), "at least one listener is needed"),
    ],
)
def test_a_listener_that_can_not_be_had(settings: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused(tmp_path, said, *settings)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"KOHORT_LISTENERS": "SSL://:0"}, "listener SSL: a listener with SSL needs a certificate"),
        ({"KOHORT_LISTENERS": "SASL_SSL://:0"}, "listener SASL_SSL: a listener with SSL needs a certificate"),
        ({"KOHORT_LISTENERS": "SASL_PLAINTEXT://:0"}, "PLAIN has no users"),
        ({"KOHORT_LISTENER": "SASL_SSL://:0"}, "no such key; did you mean listeners"),
        ({"KOHORT_LISTENER_NAME_SSL_SSL_CLIENT_AUTH": "required"}, "listeners has no SSL"),
        ({"KOHORT_LISTENER_NAME_PLAINTEXT_SSL_CLIENT_OUTH": "required"}, "no such key"),
    ],
)
def test_environment_variables_are_taken_at_their_word(environ: dict[str, str], said: str, tmp_path: Path) -> None:
    refused(tmp_path, said, environ=environ)


def test_one_listener_that_can_not_be_had_leaves_none_open(tmp_path: Path) -> None:
    refused(tmp_path, "listener SSL: a listener with SSL needs", "listeners=PLAINTEXT://127.0.0.1:0,SSL://:0")


def test_an_encrypted_key_with_its_password(tmp_path: Path, with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port, trusting())
        assert (await client.call(MetadataRequest(topics=[]))).controller_id == 1
        await client.close()

    keystore = encrypted(tmp_path)
    with_server(test, "listeners=SSL://127.0.0.1:0", f"ssl.keystore.location={keystore}", "ssl.key.password=right")


def test_a_certificate_that_has_expired_is_said(
    tmp_path: Path, with_server: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """As with Apache Kafka the broker starts: its clients refuse it."""
    ended = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    expired = trustme.CA().issue_cert("localhost", not_before=ended - datetime.timedelta(days=1), not_after=ended)
    (tmp_path / "expired.pem").write_text(pem(expired))

    async def test(server: Server) -> None:
        tls = server.listeners[0].tls
        assert tls is not None
        for _ in range(3):
            assert not tls.check()

    with_server(test, "listeners=SSL://127.0.0.1:0", f"ssl.keystore.location={tmp_path / 'expired.pem'}")
    said = [record.getMessage() for record in caplog.records if "expired" in record.getMessage()]
    assert said == [f"the certificate of listener=SSL has expired, on {ended:%Y-%m-%d %H:%M} UTC: clients refuse it"]


def test_keys_that_no_listener_uses_are_said(with_server: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server) -> None:
        assert "no listener uses TLS or SASL, though keys=ssl.client.auth are set" in caplog.text

    with_server(test, "ssl.client.auth=required")


def test_the_listeners_of_the_command_line_keep_their_protocol() -> None:
    settings, _ = _settings(ServeOptions(listen="127.0.0.1:0", set=("listeners=SASL_SSL://:9093",)), None)
    assert [(each.name, each.protocol.value) for each in configured_listeners(settings)] == [("SASL_SSL", "SASL_SSL")]


def test_others_on_this_machine_can_not_read_secrets(tmp_path: Path) -> None:
    def modes() -> list[int]:
        return [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("__cluster_metadata-0", SECRET)]

    async def start() -> None:
        jaas = f"plain.sasl.jaas.config={JAAS}"
        async with serving(tmp_path, "listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=PLAIN", jaas):
            pass

    asyncio.run(start())
    assert modes() == [0o700, 0o600]
    (tmp_path / "__cluster_metadata-0").chmod(0o755)
    (tmp_path / SECRET).chmod(0o644)
    kept_secret.cache_clear()
    asyncio.run(start())
    assert modes() == [0o750, 0o600]
