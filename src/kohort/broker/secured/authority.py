"""An authority, and the broker's certificate that it signs: made where they aren't there, checked where they are."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.broker.config.errors import ConfigError
from kohort.broker.secured.files import PUBLIC, SECRET, read, write
from kohort.certificates import Authority, Period, certificate_pem, key_pem, new_key, signed

if TYPE_CHECKING:
    from cryptography import x509

    from kohort.certificates import Key

__all__ = ["CertificateFiles"]

AUTHORITY_DAYS: Final = 3650
SERVER_DAYS: Final = 365
RENEWED_DAYS: Final = 30
"""Days before its end that a certificate is made anew."""

_NAME: Final = "Kohort authority"
_SERVER: Final = "Kohort"
_CLOCKS_DIFFER_BY: Final = datetime.timedelta(days=1)
_SOON: Final = datetime.timedelta(days=RENEWED_DAYS)


class CertificateFiles:
    """The files of the authority and of the broker's certificate.

    Attributes:
        ca: the authority's certificate, which clients trust.
        ca_key: its key; needed only where a certificate is made.
        server: the broker's key and certificate, with the authority's.
    """

    def __init__(self, directory: Path) -> None:
        self.ca = directory / "ca.pem"
        self.ca_key = directory / "ca.key"
        self.server = directory / "server.pem"

    def make(self, hosts: Collection[str], now: datetime.datetime) -> list[str]:
        """Makes what isn't there, and the certificate anew that doesn't fit or is about to end.

        Args:
            hosts: names and addresses of the broker.
            now: with a time zone.

        Returns:
            what was made, and why; and what will have to be done.

        Raises:
            ConfigError: the files can't be used as they are.
            OSError: they can't be read or written.
        """
        certificate, key, notes = self._authority(now)
        reason = self._why_anew(certificate, hosts, now)
        if reason is None:
            return notes
        if key is None:
            raise ConfigError(
                f"{self.server} must be made ({reason}), but {self.ca_key}, which signs it, isn't there: put it back, "
                f"or move {self.ca} away, too, and give clients the new one"
            )
        end = min(now + datetime.timedelta(days=SERVER_DAYS), certificate.not_valid_after_utc)
        own = new_key()
        made = _certificate(Authority(certificate.subject, key), Period(now - _CLOCKS_DIFFER_BY, end), own, hosts)
        write(self.server, key_pem(own) + certificate_pem(made) + certificate_pem(certificate), SECRET)
        return [*notes, f"{self.server} is made for {', '.join(sorted(hosts))}, until {end:%Y-%m-%d}: {reason}"]

    def _authority(self, now: datetime.datetime) -> tuple[x509.Certificate, Key | None, list[str]]:
        """The authority's certificate, its key if there is one, and notes. Its key is written first."""
        pem, secret = read(self.ca), read(self.ca_key)
        if pem is None:
            key = new_key() if secret is None else self._key(self.ca_key, secret)
            period = Period(now - _CLOCKS_DIFFER_BY, now + datetime.timedelta(days=AUTHORITY_DAYS))
            certificate = signed(Authority(_NAME, key), period, name=_NAME, key=key)
            write(self.ca_key, key_pem(key) if secret is None else secret, SECRET)
            write(self.ca, certificate_pem(certificate), PUBLIC)
            return certificate, key, [f"{self.ca} is made, until {period.end:%Y-%m-%d}: clients trust it"]
        certificate = self._certificate(self.ca, pem)
        end = certificate.not_valid_after_utc
        away = f"move {self.ca} and {self.ca_key} away, and give clients the new one"
        if end <= now:
            raise ConfigError(f"{self.ca} has expired on {end:%Y-%m-%d}: {away}")
        notes = [f"{self.ca} expires on {end:%Y-%m-%d}: {away}"] if end - now < _SOON else []
        if secret is None:
            return certificate, None, notes
        known = self._key(self.ca_key, secret)
        if known.public_key() != certificate.public_key():
            raise ConfigError(f"{self.ca_key} isn't the key of {self.ca}: put the right one back, or {away}")
        return certificate, known, notes

    def _why_anew(self, authority: x509.Certificate, hosts: Collection[str], now: datetime.datetime) -> str | None:
        """Why the broker's certificate must be made; None if it needn't."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        text = read(self.server)
        if text is None:
            return "there was none"
        try:
            key, certificate = self._key(self.server, text), self._certificate(self.server, text)
        except ConfigError:
            return "it was broken"
        if key.public_key() != certificate.public_key():
            return "its key was another's"
        try:
            certificate.verify_directly_issued_by(authority)
        except (InvalidSignature, TypeError, ValueError):
            return f"it wasn't signed by {self.ca}"
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if not begin <= now:
            return f"it counted only from {begin:%Y-%m-%d}"
        if end - now < _SOON and end < authority.not_valid_after_utc:
            return f"it expired on {end:%Y-%m-%d}"
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (x509.ExtensionNotFound, ValueError):
            return "it was for no host"
        known = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
        lacking = sorted(host for host in hosts if host not in known)
        return f"it wasn't for {', '.join(lacking)}" if lacking else None

    def _certificate(self, path: Path, text: str) -> x509.Certificate:
        from cryptography import x509

        try:
            return x509.load_pem_x509_certificate(text.encode())
        except ValueError:
            raise ConfigError(
                f"{path}: there is no certificate in PEM: put the right file back, or move it away with all others "
                "that were made here, and all are made anew"
            ) from None

    def _key(self, path: Path, text: str) -> Key:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key: Any = None
        with contextlib.suppress(TypeError, UnsupportedAlgorithm, ValueError):  # which it is doesn't matter
            key = load_pem_private_key(text.encode(), None)
        if isinstance(key, (EllipticCurvePrivateKey, RSAPrivateKey)):
            return key
        raise ConfigError(
            f"{path}: there is no private key in PEM, of EC or RSA and without a password: put the right file back, or "
            "move it away with all others that were made here, and all are made anew"
        )


def _certificate(authority: Authority, period: Period, own: Key, hosts: Collection[str]) -> x509.Certificate:
    """The broker's."""
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        return signed(
            authority,
            period,
            name=_SERVER,
            key=own,
            uses=[ExtendedKeyUsageOID.SERVER_AUTH],
            hosts=sorted(hosts),
        )
    except ValueError as error:
        raise ConfigError(f"no certificate can be for {', '.join(sorted(hosts))}: {error}") from None
