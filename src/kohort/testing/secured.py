"""Who gets into a secured broker of a test, with which settings, and what they may do there."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from kohort.broker.secured.client_settings import MECHANISM, ClientSettings
from kohort.client import Admin, ClientConfig
from kohort.client.admin import SCRAM_MECHANISMS, Acl, AclOperation, AclPattern, AclPermission, AclResource
from kohort.testing.blocking import PATIENCE_MS, run_blocking

__all__ = ["Login", "Security"]


@dataclass(frozen=True, slots=True)
class Login:
    """A user, and the settings of clients that log in as this user.

    Attributes:
        servers: bootstrap servers.
        ca: the file of the authority's certificate, in PEM.
        name, password: of the user.
    """

    servers: str
    ca: Path
    name: str
    password: str = field(repr=False)

    @property
    def principal(self) -> str:
        """As access rules have it, such as "User:alice"."""
        return f"User:{self.name}"

    @property
    def librdkafka(self) -> dict[str, str]:
        """Settings for librdkafka, such as confluent-kafka's clients."""
        return self._settings.librdkafka()

    @property
    def aiokafka(self) -> dict[str, Any]:
        """Arguments of aiokafka's clients: `AIOKafkaProducer(**login.aiokafka)`."""
        return {
            "bootstrap_servers": self.servers,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(self.ca)),
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.name,
            "sasl_plain_password": self.password,
        }

    @property
    def java(self) -> dict[str, str]:
        """Settings for Java's clients."""
        return self._settings.java()

    @property
    def java_file(self) -> Path:
        """The same in a file, as Kafka's tools take it with `--command-config`, and `kohort` with `--config`."""
        path = self.ca.with_name(f"{self.name.encode().hex()}.properties")
        path.touch(0o600)
        path.write_text(self._settings.java_file())
        return path

    @property
    def config(self) -> ClientConfig:
        """Settings for the clients of `kohort.client`."""
        return ClientConfig(
            bootstrap_servers=self.servers,
            security_protocol="SASL_SSL",
            ssl_cafile=self.ca,
            sasl_mechanism=MECHANISM,
            sasl_username=self.name,
            sasl_password=self.password,
        )

    @property
    def _settings(self) -> ClientSettings:
        return ClientSettings(self.servers, self.ca, self.name, self.password)


class Security:
    """The users and access rules of a secured broker.

    Its methods block until the broker has answered: with `async with`, call them by `asyncio.to_thread`. In the
    broker's own event loop they raise RuntimeError.

    Attributes:
        admin: the first user, who may do everything.
    """

    def __init__(self, admin: Login, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.admin = admin
        self._loop = loop

    @classmethod
    def of(cls, settings: ClientSettings, loop: asyncio.AbstractEventLoop | None = None) -> Self:
        """Of a broker that clients with these settings administer; in an event loop, if it is in this process."""
        return cls(Login(*settings), loop)

    def add_user(self, name: str, password: str | None = None) -> Login:
        """Makes a user, with a random password by default. One that is there gets the new password, and the login of an
        earlier call no longer gets in: keep what the first call returns.

        Raises:
            KafkaError: UNACCEPTABLE_CREDENTIAL.
        """
        login = Login(self.admin.servers, self.admin.ca, name, password or secrets.token_urlsafe())

        async def work(admin: Admin) -> None:
            for mechanism in SCRAM_MECHANISMS:
                await admin.users.set(name, login.password, mechanism=mechanism, iterations=4096)

        self._run("add_user", work)
        return login

    def delete_user(self, name: str) -> None:
        """Removes a user; connections that there are stay.

        Raises:
            KafkaError: RESOURCE_NOT_FOUND.
        """

        async def work(admin: Admin) -> None:
            for credential in (await admin.users.describe(name))[name]:
                await admin.users.delete(name, credential.mechanism)

        self._run("delete_user", work)

    def add_acls(self, *acls: Acl) -> None:
        """Adds access rules.

        Raises:
            TypeError: one isn't an `Acl` of words of its enumerations.
            ValueError: a principal that isn't "User:alice" and the like.
            KafkaError, PartialFailureError: as `Admin.acls.create`.
        """
        for acl in acls:
            _check(acl)
        self._run("add_acls", lambda admin: admin.acls.create(*acls))

    def _run(self, name: str, work: Callable[[Admin], Awaitable[Any]]) -> None:
        async def main() -> None:
            config = replace(self.admin.config, bootstrap_timeout_ms=PATIENCE_MS)
            async with Admin(config, default_api_timeout_ms=PATIENCE_MS) as admin:
                await work(admin)

        run_blocking(f"broker.security.{name}", main, self._loop)


def _check(acl: object) -> None:
    """Refuses what only the encoder would, deep down, or the broker without an example."""
    if not isinstance(acl, Acl) or not (
        isinstance(acl.resource, AclResource)
        and isinstance(acl.operation, AclOperation)
        and isinstance(acl.permission, AclPermission)
        and isinstance(acl.pattern, AclPattern)
    ):
        raise TypeError(
            f'a rule is Acl(AclResource.TOPIC, "orders", alice.principal, AclOperation.READ), '
            f"with words of kohort.client.admin's enumerations, not {acl!r:.200}"
        )
    if ":" not in acl.principal:
        raise ValueError(f'a principal is "User:{acl.principal}", as Login.principal has it, not {acl.principal!r}')
