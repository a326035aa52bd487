from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from kohort.broker.validity import validity
from tests.broker.certificates import CA, pem

BEGINS = datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC)


def certificate(ends: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 2**150 + 1, BEGINS, ends).sign(key, hashes.SHA256())
    return made.public_bytes(Encoding.PEM).decode()


@pytest.mark.parametrize("year", [2025, 2049, 2050, 9999])
def test_times_in_both_forms(year: int) -> None:
    ends = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert validity(certificate(ends)) == (BEGINS, ends)


def test_the_first_certificate_counts() -> None:
    ends = BEGINS + timedelta(days=1)
    assert validity("-----BEGIN PRIVATE KEY-----\n" + certificate(ends) + pem(CA.issue_cert("a"))) == (BEGINS, ends)


def test_what_is_wrong_is_said() -> None:
    found = validity(certificate(BEGINS + timedelta(days=1)))
    assert found is not None
    assert found.problem(BEGINS) is None
    assert found.problem(BEGINS - timedelta(seconds=1)) == "isn't valid before 2024-02-29 12:30 UTC"
    assert found.problem(BEGINS + timedelta(days=2)) == "has expired, on 2024-03-01 12:30 UTC"


@pytest.mark.parametrize("text", ["", "nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
                                  "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----"])  # fmt: skip
def test_what_is_none(text: str) -> None:
    assert validity(text) is None
