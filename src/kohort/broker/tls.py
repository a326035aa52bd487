"""TLS of a listener: its certificate, whose client certificates it takes, and both again when the files change."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from kohort.broker.config.errors import ConfigError
from kohort.broker.config.settings import Settings
from kohort.broker.keystores import opened_store
from kohort.broker.validity import validity
from kohort.security.distinguished_names import distinguished_name

log = logging.getLogger("kohort.broker.tls")

CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
"""By `ssl.client.auth`."""

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    """What a listener's TLS is made of; texts are PEM.

    Attributes:
        keystore: a file with the private key and the certificate chain: PEM or PKCS#12.
        keystore_password, truststore_password: of a PKCS#12 file; "" without one.
        key, certificate_chain: the same as texts, where there is no file.
        key_password: of an encrypted key; "" without one.
        truststore: a file with the certificates that client certificates are signed by: PEM or PKCS#12.
        trusted: the same as a text.
        client_auth: "none", "requested" or "required".
        protocols: such as ("TLSv1.2", "TLSv1.3").
        ciphers: OpenSSL's names or the standard's, of TLS 1.2; () for the default.
    """

    keystore: Path | None = None
    keystore_password: str = ""
    key: str = ""
    certificate_chain: str = ""
    key_password: str = ""
    truststore: Path | None = None
    truststore_password: str = ""
    trusted: str = ""
    client_auth: str = "none"
    protocols: Sequence[str] = ("TLSv1.2", "TLSv1.3")
    ciphers: Sequence[str] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Those that may change."""
        return tuple(path for path in (self.keystore, self.truststore) if path is not None)


class HandshakeError(ssl.SSLError):
    """A handshake that failed; asyncio closes the connection without telling the client why.

    Attributes:
        alert: what tells it.
    """

    alert: bytes = b""
    verify_message: str = ""


class _Connection(ssl.SSLObject):
    """A connection that keeps the alert of a failed handshake."""

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            failed = HandshakeError(*error.args)
            failed.reason = error.reason
            failed.verify_message = getattr(error, "verify_message", "")
            failed.alert = self.outgoing.read()
            raise failed from error


class _Context(ssl.SSLContext):
    sslobject_class = _Connection

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> _Connection:
        connection = cast(_Connection, super().wrap_bio(incoming, outgoing, *args, **options))
        connection.outgoing = outgoing
        return connection


def tls_settings(settings: Settings, *, client_auth: str) -> TlsSettings:
    """Returns what the TLS of a listener is made of.

    Args:
        settings: of this listener.
        client_auth: as `TlsSettings.client_auth`.
    """
    keystore, truststore = settings.text("ssl.keystore.location"), settings.text("ssl.truststore.location")
    return TlsSettings(
        keystore=Path(keystore) if keystore else None,
        keystore_password=settings.text("ssl.keystore.password"),
        key=settings.text("ssl.keystore.key"),
        certificate_chain=settings.text("ssl.keystore.certificate.chain"),
        key_password=settings.text("ssl.key.password"),
        truststore=Path(truststore) if truststore else None,
        truststore_password=settings.text("ssl.truststore.password"),
        trusted=settings.text("ssl.truststore.certificates"),
        client_auth=client_auth,
        protocols=settings.names("ssl.enabled.protocols"),
        ciphers=settings.names("ssl.cipher.suites"),
    )


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Makes the context of a listener.

    Raises:
        ConfigError: something isn't there, can't be read, or doesn't belong together; says what to do.
    """
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    unknown = [name for name in settings.protocols if name not in _VERSIONS]
    if unknown or not settings.protocols:
        raise ConfigError(f"ssl.enabled.protocols: {', '.join(unknown) or 'nothing'}; there are {', '.join(_VERSIONS)}")
    versions = sorted(_VERSIONS[name] for name in settings.protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _load_certificate(context, settings)
    _load_trusted(context, settings)
    if settings.ciphers:
        try:
            context.set_ciphers(":".join(map(_openssl_name, settings.ciphers)))
        except ssl.SSLError:
            raise ConfigError(f"ssl.cipher.suites: none of {', '.join(settings.ciphers)} is known here") from None
    return context


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    def password() -> str:  # without one, OpenSSL would ask for it on the terminal
        return settings.key_password

    try:
        if settings.keystore is not None:
            if store := opened_store(settings.keystore, settings.keystore_password, "ssl.keystore"):
                with _file(store.key + store.certificates) as file:
                    context.load_cert_chain(file, password=password)
            else:
                context.load_cert_chain(settings.keystore, password=password)
        elif settings.key and settings.certificate_chain:
            with _file(settings.certificate_chain) as chain, _file(settings.key) as key:
                context.load_cert_chain(chain, key, password)
        else:
            raise ConfigError(
                "a listener with SSL needs a certificate: ssl.keystore.type=PEM with ssl.keystore.location (a file "
                "with its key and certificates), or ssl.keystore.key with ssl.keystore.certificate.chain"
            )
    except ConfigError:
        raise
    except (OSError, ValueError, TypeError) as error:
        where = f"ssl.keystore.location={settings.keystore}" if settings.keystore else "ssl.keystore.key"
        raise ConfigError(
            f"{where}: there must be a PEM private key and its certificates, and ssl.key.password if the key is "
            f"encrypted: {error}"
        ) from None


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings) -> None:
    mode = CLIENT_AUTH.get(settings.client_auth)
    if mode is None:
        raise ConfigError(f"ssl.client.auth={settings.client_auth}: one of {', '.join(CLIENT_AUTH)} is needed")
    context.verify_mode = mode
    try:
        if settings.truststore is not None:
            if store := opened_store(settings.truststore, settings.truststore_password, "ssl.truststore"):
                context.load_verify_locations(cadata=store.certificates)
            else:
                context.load_verify_locations(cafile=settings.truststore)
        elif settings.trusted:
            context.load_verify_locations(cadata=settings.trusted)
        elif mode is not ssl.CERT_NONE:
            raise ConfigError(
                f"ssl.client.auth={settings.client_auth} needs the certificates that clients' are signed by: "
                "ssl.truststore.location or ssl.truststore.certificates, with ssl.truststore.type=PEM"
            )
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"ssl.truststore: no PEM certificates: {error}") from None


def shown_certificates(settings: TlsSettings) -> str:
    """The certificates that a listener shows, its own first, as PEM; settings must have made a context.

    Raises:
        ConfigError, OSError: the keystore isn't what it was any more.
    """
    if settings.keystore is None:
        return settings.certificate_chain
    store = opened_store(settings.keystore, settings.keystore_password, "ssl.keystore")
    return settings.keystore.read_text(errors="replace") if store is None else store.certificates


@contextmanager
def _file(text: str) -> Iterator[Path]:
    """A text as a file that nobody else can read, for as long as it is needed; in memory, where the system can."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("kohort"), "w") as file:
            file.write(text)
            file.flush()
            yield Path(f"/proc/self/fd/{file.fileno()}")
        return
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        yield path
    finally:
        path.unlink()


def _openssl_name(suite: str) -> str:
    """OpenSSL's name of a TLS 1.2 cipher suite that may have the standard's: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    if not suite.startswith("TLS_") or "_WITH_" not in suite:
        return suite
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC_SHA", "_SHA")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return f"{exchange}_{cipher}".removeprefix("RSA_").replace("_", "-")


class TlsContext:
    """A listener's context, kept up with its files.

    Args:
        name: of the listener, for messages.
        now: the time, with a time zone.

    Attributes:
        context: for the next handshake. Another one takes its place when files have changed: so those whom the new
            files don't trust can't go on by a session that began with the old ones, either.

    Raises:
        ConfigError: as `server_context`.
    """

    def __init__(
        self, settings: TlsSettings, name: str = "", now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._settings = settings
        self._name = name
        self._now = now
        self._seen = self._stamps()
        self.context = server_context(settings)
        self._validity = validity(shown_certificates(settings))
        self._told: str | None = None
        self._tell_validity()

    @property
    def expires(self) -> datetime | None:
        """When the certificate in use expires; None if that can't be read."""
        return None if self._validity is None else self._validity.ends

    def check(self) -> bool:
        """Takes up files that have changed; returns whether it did. If they are broken, the old ones stay in use.

        Says so once if the certificate has expired in the meantime.
        """
        stamps = self._stamps()
        changed = stamps != self._seen
        if changed:
            self._seen = stamps
            changed = self._read_again()
        self._tell_validity()
        return changed

    def _read_again(self) -> bool:
        try:
            context, shown = server_context(self._settings), shown_certificates(self._settings)
        except (ConfigError, OSError) as error:
            log.error("the changed certificates can't be used, the old ones stay listener=%s: %s", self._name, error)
            return False
        self.context, self._validity = context, validity(shown)
        files = ", ".join(map(str, self._settings.files))
        log.info("certificates are read again listener=%s files=%s", self._name, files)
        return True

    def _tell_validity(self) -> None:
        problem = None if self._validity is None else self._validity.problem(self._now())
        if problem and problem != self._told:
            log.warning("the certificate of listener=%s %s: clients refuse it", self._name, problem)
        self._told = problem

    def _stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        stamps: list[tuple[int, int, int] | None] = []
        for path in self._settings.files:
            try:
                found = path.stat()
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except OSError:
                stamps.append(None)
        return tuple(stamps)


def peer_name(connection: ssl.SSLObject) -> str | None:
    """The distinguished name of the client's certificate; None if it has shown none."""
    certificate = connection.getpeercert()
    return distinguished_name(certificate["subject"]) if certificate else None  # type: ignore[arg-type]
