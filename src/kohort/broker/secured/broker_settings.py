"""The broker's settings that a secured broker has, and those that contradict it."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Final

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.listeners import ListenerConfig, SecurityProtocol, configured_listeners
from kohort.broker.config.security_keys import STANDARD_AUTHORIZER
from kohort.broker.secured.client_settings import MECHANISM

SOURCE: Final = "--secure"

_CERTIFICATE: Final = ("ssl.keystore.", "ssl.key.password")


def secured(settings: Settings, directory: Path, certificate: Path, user: str) -> Settings:
    """Returns the settings with TLS, SCRAM and access rules.

    Args:
        directory: for messages.
        certificate: the file of the broker's key and certificate.
        user: who may do everything.

    Raises:
        ConfigError: something that is configured contradicts that.
    """
    said = f"--secure {directory}"
    for listener in configured_listeners(settings):
        if listener.protocol is not SecurityProtocol.SASL_SSL:
            raise ConfigError(
                f"{said}: listener {listener.name} would be {listener.protocol.value}, without "
                f"{'a password' if listener.protocol.tls else 'encryption'}; only SASL_SSL is possible "
                f"(listeners, {settings.source_of('listeners')})"
            )
    for name, configured in settings.static.items():
        if any(f".{start}" in f".{name}" for start in _CERTIFICATE):
            raise ConfigError(f"{name} ({configured.where}): {said} has the certificate: leave one of them out")
    authorizer = settings.configured("authorizer.class.name")
    if authorizer is not None and authorizer.text.strip() != STANDARD_AUTHORIZER:
        raise ConfigError(f"authorizer.class.name ({authorizer.where}): {said} needs {STANDARD_AUTHORIZER}")
    users = [each for part in settings.text("super.users").split(";") if (each := part.strip())]
    values: dict[str, object] = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": ";".join(dict.fromkeys([*users, f"User:{user}"])),
        "ssl.keystore.location": str(certificate),
        "ssl.keystore.type": "PEM",
    }
    if settings.configured("sasl.enabled.mechanisms") is None:
        values["sasl.enabled.mechanisms"] = [MECHANISM, "SCRAM-SHA-256"]
    made = settings.with_overrides(values, SOURCE)
    for listener in configured_listeners(made):
        own = made.for_listener(listener.name)
        if MECHANISM not in own.names("sasl.enabled.mechanisms"):
            raise ConfigError(
                f"sasl.enabled.mechanisms ({own.source_of('sasl.enabled.mechanisms')}): {said} needs {MECHANISM} among "
                f"those of {listener.name}, for {user} to log in"
            )
    return made


def hosts(settings: Settings) -> set[str]:
    """The names and addresses by which clients may reach the broker, as certificates have them."""
    names = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
    for listener in configured_listeners(settings):
        names |= _hosts(listener)
    return {_normal(name) for name in names if name}


def _hosts(listener: ListenerConfig) -> set[str]:
    advertised = listener.advertised(listener.endpoint.port).host
    return {advertised} if listener.endpoint.everywhere else {advertised, listener.endpoint.host}


def _normal(host: str) -> str:
    """An address in its shortest form; a name in ASCII."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError as error:
        raise ConfigError(f"no certificate can be for the host {host!r}: {error}") from None
