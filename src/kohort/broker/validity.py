"""How long a certificate is valid: read from its DER, as Python's `ssl` shows that only of a peer's."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime
from typing import Final, NamedTuple

__all__ = ["Validity", "validity"]

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION: Final = 0xA0
_TIMES: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
"""UTCTime and GeneralizedTime."""


class Validity(NamedTuple):
    """From when until when a certificate is valid."""

    begins: datetime
    ends: datetime

    def problem(self, now: datetime) -> str | None:
        """What is wrong at a time; None if it is valid."""
        if now < self.begins:
            return f"isn't valid before {self.begins:%Y-%m-%d %H:%M} UTC"
        if now > self.ends:
            return f"has expired, on {self.ends:%Y-%m-%d %H:%M} UTC"
        return None


def validity(pem: str) -> Validity | None:
    """The validity of the first certificate in a text, which is the one that is shown; None if there is none."""
    found = _PEM.search(pem)
    if found is None:
        return None
    try:
        certificate = ssl.PEM_cert_to_DER_cert(found[0])
        _, start, _ = _element(certificate, 0)
        _, at, _ = _element(certificate, start)
        tag, _, _ = _element(certificate, at)
        passed_over = 4 if tag == _VERSION else 3  # the version, the serial number, the algorithm, the issuer
        for _ in range(passed_over):
            _, _, at = _element(certificate, at)
        _, at, _ = _element(certificate, at)
        begins, at = _time(certificate, at)
        ends, _ = _time(certificate, at)
    except (ValueError, IndexError, KeyError):
        return None
    return Validity(begins, ends)


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """The tag of an element, where its contents begin, and where they end."""
    tag, length, start = der[at], der[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length, start = int.from_bytes(der[start : start + count], "big"), start + count
    return tag, start, start + length


def _time(der: bytes, at: int) -> tuple[datetime, int]:
    tag, start, end = _element(der, at)
    return datetime.strptime(der[start:end].decode(), _TIMES[tag]).replace(tzinfo=UTC), end
