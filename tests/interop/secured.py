"""Servers that also listen with TLS, SASL and both: what they have in common, and Kohort's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final, Protocol

import trustme
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import serialization

from kohort.client import ClientConfig

from ..signed_tokens import AUDIENCE, ISSUER, write_key_set
from .servers import KohortServer

USER: Final = "kohort"
PASSWORD: Final = "a secret with spaces"
SECURE_PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
ALL_PROTOCOLS: Final = ("PLAINTEXT", *SECURE_PROTOCOLS)
SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM_MECHANISMS)
"""Those with a password; there is OAUTHBEARER, too."""

ALLOWED_URLS: Final = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"
WAYS: Final = (("SSL", ""), *((protocol, each) for protocol in SECURE_PROTOCOLS[1:] for each in MECHANISMS))
"""How a client gets in: by which protocol and mechanism, or with a certificate."""

AUTHORIZED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{USER}",
}
"""Settings of a server with access rules, which hold for others than the tests' own users."""

_LOGIN: Final = "org.apache.kafka.common.security"


class House:
    """A certificate authority with a certificate for localhost and one for a client, and the settings of a server.

    Attributes:
        ca: what signed the certificates, PEM.
        client_pem: a certificate with its key, which the listener SSL asks for.
        keys: the JWKS, a file, of who signs tokens.
        java_flags: what a JVM wants to be told before it reads such files.
        settings: of a server with listeners of `SECURE_PROTOCOLS`, but for the listeners themselves.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        self.ca, self.client_pem, server_pem = (directory / name for name in ("ca.pem", "client.pem", "server.pem"))
        authority.cert_pem.write_to_path(str(self.ca))
        self.client_pem.write_bytes(_for_java(authority.issue_cert("kohort@example.org")))
        server_pem.write_bytes(_for_java(authority.issue_cert("localhost")))
        self.keys = directory / "keys.json"
        keys_url = write_key_set(self.keys)
        self.java_flags = (f"{ALLOWED_URLS}={keys_url}",)
        login = f'username="{USER}" password="{PASSWORD}"'
        scram = f"{_LOGIN}.scram.ScramLoginModule required;"
        modules = {
            "plain": f'{_LOGIN}.plain.PlainLoginModule required {login} user_{USER}="{PASSWORD}";',
            "scram-sha-256": scram,
            "scram-sha-512": scram,
            "oauthbearer": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        }
        self.settings = {
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}"
                for name, protocol in (("CONTROLLER", "PLAINTEXT"), *((each, each) for each in ALL_PROTOCOLS))
            ),
            "ssl.keystore.location": str(server_pem),
            "ssl.truststore.location": str(self.ca),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
            "sasl.oauthbearer.jwks.endpoint.url": keys_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        } | {
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config": module
            for listener in ("sasl_plaintext", "sasl_ssl")
            for mechanism, module in modules.items()
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            handler = f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"
            self.settings[handler] = f"{_LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"


class SecureServer(Protocol):
    """A server with a house.

    Attributes:
        bootstrap: in plain text.
        ports: by security protocol.
    """

    house: House
    ports: dict[str, int]

    @property
    def bootstrap(self) -> str: ...


class SecureKohort(KohortServer):
    """`kohort serve` with listeners of all protocols; its users are made once it is ready."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        self.house = House(directory)
        super().__init__(directory, self.house.settings | (settings or {}))
        self.ports = dict.fromkeys(SECURE_PROTOCOLS, 0)

    def command(self) -> list[str]:
        ports = {"PLAINTEXT": self.port, **self.ports}
        settings = {
            **self.settings,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        }
        program = [sys.executable, "-m", "kohort.cli", "serve", "--data-dir", str(self.data_dir)]
        return [*program, *(f"--set={key}={value}" for key, value in settings.items())]

    def ready(self) -> bool:
        if not super().ready():
            return False
        addresses = self.said.read_text().split()[3:]
        ports = (int(address.rpartition(":")[2]) for address in addresses)
        self.port, self.ports = next(ports), dict(zip(SECURE_PROTOCOLS, ports, strict=True))
        return True

    def start(self) -> None:
        super().start()
        add_user(self.bootstrap, USER, PASSWORD)


def add_user(bootstrap: str, name: str, password: str) -> None:
    """Makes a user of SCRAM, with librdkafka."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    changes = [
        UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), password.encode())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for change in changes:  # a user is changed once in a request
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(20)


def client_config(server: SecureServer, protocol: str, **settings: Any) -> ClientConfig:
    """Settings of Kohort's client that let it in, but for what is said otherwise."""
    known: dict[str, Any] = {}
    if protocol.startswith("SASL") and settings.get("sasl_mechanism") != "OAUTHBEARER":
        known |= {"sasl_username": USER, "sasl_password": PASSWORD}
    if protocol.endswith("SSL"):
        known |= {"ssl_cafile": server.house.ca}
    if protocol == "SSL":
        known |= {"ssl_certfile": server.house.client_pem}
    where = {"bootstrap_servers": f"localhost:{server.ports[protocol]}", "security_protocol": protocol}
    return ClientConfig(**where | known | settings)


def java_settings(
    server: SecureServer, protocol: str, mechanism: str, name: str = USER, password: str = PASSWORD
) -> dict[str, str]:
    """The settings of a Java client that is let in, without a mechanism by its certificate."""
    settings = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(server.house.ca)}
    if not mechanism:
        return settings | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(server.house.client_pem)}
    module = f"{_LOGIN}.{'plain.Plain' if mechanism == 'PLAIN' else 'scram.Scram'}LoginModule"
    login = f'{module} required username="{name}" password="{password}";'
    return settings | {"sasl.mechanism": mechanism, "sasl.jaas.config": login}


def java_properties(
    server: SecureServer, directory: Path, protocol: str, mechanism: str, name: str = USER, password: str = PASSWORD
) -> Path:
    """A file of them, with short limits of time."""
    limits = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
    settings = java_settings(server, protocol, mechanism, name, password) | limits
    path = directory / f"{protocol}-{mechanism}-{name}-{hash(password)}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def _for_java(certificate: trustme.LeafCert) -> bytes:
    """A certificate chain and its key as Java wants them: PEM, the key as PKCS#8."""
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    chain = [each.bytes() for each in certificate.cert_chain_pems]
    return b"".join([key.private_bytes(pem, pkcs8, serialization.NoEncryption()), *chain])
