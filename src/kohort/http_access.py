"""Who may ask an HTTP port: those who have its token, or a client certificate; and the certificate that it shows."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kohort.trusted_tls import trusting

__all__ = ["CHALLENGE", "LOOPBACK", "OPEN", "HttpAccess", "check_token", "is_loopback", "warn_if_exposed"]

LOOPBACK: Final = "127.0.0.1"
"""Where an HTTP port listens unless an address is given."""

CHALLENGE: Final = 'Bearer realm="kohort"'
"""The header WWW-Authenticate of an answer 401."""

_LEAST_TOKEN: Final = 16
_SCHEME: Final = b"bearer "

log = logging.getLogger("kohort.http")


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """What an HTTP port asks of those who ask it. With a token and certificates, both are needed.

    Attributes:
        token: what comes after "Authorization: Bearer"; None if it isn't asked for.
        server: TLS of the port; None for plain HTTP.
        client: TLS with which another port of the same kind is asked; None for plain HTTP.
    """

    token: bytes | None = field(default=None, repr=False)
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None

    @classmethod
    def load(
        cls,
        prefix: str,
        *,
        token_file: str | Path | None = None,
        certfile: str | Path | None = None,
        keyfile: str | Path | None = None,
        cafile: str | Path | None = None,
    ) -> HttpAccess:
        """Reads the files.

        Args:
            prefix: what the options' names begin with, for errors: "--metrics-", "application_server_".
            token_file: has the token, and at its end at most a newline.
            certfile, keyfile: PEM files of the port's certificate chain and key (which may be in the former).
            cafile: PEM file of the certificates that client certificates must be signed by; None asks for none.

        Raises:
            ValueError: a file that can't be read, isn't what it should be, or lacks its other half; says which.
        """

        def option(name: str) -> str:
            return prefix + (name.replace("_", "-") if prefix.startswith("-") else name)

        if certfile is None:
            for name, given in (("keyfile", keyfile), ("cafile", cafile)):
                if given is not None:
                    raise ValueError(f"{option(name)} needs {option('certfile')}, the certificate that the port shows")
        token = None if token_file is None else _read_token(option("token_file"), Path(token_file))
        if certfile is None:
            return cls(token)
        contexts = []
        for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
            try:
                context = trusting(cafile, purpose)
            except OSError as error:
                raise ValueError(f"{option('cafile')} {cafile}: no PEM certificates: {error}") from None
            try:
                # Without a password it's empty, or OpenSSL would ask for one on the terminal.
                context.load_cert_chain(certfile, keyfile, password="")
            except (OSError, ssl.SSLError) as error:
                raise ValueError(
                    f"{option('certfile')} {certfile}: a PEM certificate and its key, without a password, are needed, "
                    f"the key there or in {option('keyfile')}: {error}"
                ) from None
            contexts.append(context)
        server, client = contexts
        if cafile is not None:
            server.verify_mode = ssl.CERT_REQUIRED
        return cls(token, server, client)

    @classmethod
    def to_ask(
        cls,
        prefix: str,
        *,
        token_file: str | Path | None = None,
        cafile: str | Path | None = None,
        certfile: str | Path | None = None,
        keyfile: str | Path | None = None,
    ) -> HttpAccess:
        """Reads the files with which ports are asked that others have protected.

        Args:
            prefix: what the options' names begin with, for errors: "--stores-".
            token_file: has their token.
            cafile: PEM file of the certificates that theirs must be signed by; None asks by plain HTTP.
            certfile, keyfile: PEM files of the certificate that is shown to them, and its key (perhaps in the former).

        Raises:
            ValueError: a file that can't be read, isn't what it should be, or lacks its other half; says which.
        """
        if certfile is None and keyfile is not None:
            raise ValueError(f"{prefix}keyfile needs {prefix}certfile, the certificate that is shown")
        if cafile is None and certfile is not None:
            raise ValueError(f"{prefix}certfile needs {prefix}cafile, whom the other side's certificate must be of")
        token = None if token_file is None else _read_token(f"{prefix}token-file", Path(token_file))
        if cafile is None:
            return cls(token)
        try:
            context = trusting(cafile)
        except OSError as error:
            raise ValueError(f"{prefix}cafile {cafile}: no PEM certificates: {error}") from None
        if certfile is not None:
            try:
                context.load_cert_chain(certfile, keyfile, password="")  # or OpenSSL would ask on the terminal
            except (OSError, ssl.SSLError) as error:
                raise ValueError(
                    f"{prefix}certfile {certfile}: a PEM certificate and its key, without a password, are needed, "
                    f"the key there or in {prefix}keyfile: {error}"
                ) from None
        return cls(token, client=context)

    @property
    def is_open(self) -> bool:
        """Whether anybody who reaches the port may ask."""
        return self.token is None and (self.server is None or self.server.verify_mode is ssl.CERT_NONE)

    @property
    def scheme(self) -> str:
        """Of addresses of the port."""
        return "http" if self.server is None else "https"

    def allows(self, authorization: str | bytes | None) -> bool:
        """Whether a request with this header Authorization may be answered; a token is compared in constant time."""
        if self.token is None:
            return True
        given = authorization or b""
        data = given.encode(errors="surrogateescape") if isinstance(given, str) else given
        named = data[: len(_SCHEME)].lower() == _SCHEME
        return hmac.compare_digest(data[len(_SCHEME) :].strip(b" "), self.token) and named

    @property
    def authorization(self) -> str | None:
        """The header with which another port of the same kind is asked."""
        return None if self.token is None else f"Bearer {self.token.decode()}"


OPEN: Final = HttpAccess()
"""Nothing is asked for."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on. "" stands for all addresses."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_if_exposed(what: str, host: str, access: HttpAccess, options: str) -> None:
    """Logs a warning if others than this machine reach a port that asks for nothing."""
    if access.is_open and not is_loopback(host):
        log.warning("%s listens on %s: whoever reaches the port may read it; protect it by %s", what, host, options)


def check_token(source: str, token: bytes) -> None:
    """Checks that a token is one that nobody guesses.

    Args:
        source: where it comes from, for the error.
        token: what it is.

    Raises:
        ValueError: it is too short, or not one word.
    """
    if len(token) < _LEAST_TOKEN or not token.isascii() or not all(33 <= each < 127 for each in token):
        raise ValueError(
            f"{source}: a token is one word of at least {_LEAST_TOKEN} letters, digits and signs; "
            "openssl rand -hex 32 makes one"
        )


def _read_token(option: str, path: Path) -> bytes:
    try:
        token = path.read_bytes().strip()
        mode = path.stat().st_mode
    except OSError as error:
        raise ValueError(f"{option} {path}: {error.strerror or error}") from None
    check_token(f"{option} {path}", token)
    if mode & 0o077:
        log.warning("other users of this machine may read the token in %s: chmod 600 %s", path, path)
    return token
