"""The passwords in a client's configuration, apart from it: executors get them by another way than their functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kohort.client.config import ClientConfig

_NAMES: Final = ("sasl_password", "ssl_password")


def secrets_of(config: ClientConfig) -> dict[str, str]:
    """The passwords that a configuration has, by their names."""
    return {name: value for name in _NAMES if (value := getattr(config, name)) is not None}


def without_secrets(config: ClientConfig) -> ClientConfig:
    """The configuration with empty passwords, for `with_secrets`."""
    return with_secrets(config, dict.fromkeys(secrets_of(config), ""))


def with_secrets(config: ClientConfig, secrets: Mapping[str, str]) -> ClientConfig:
    """The configuration with these passwords."""
    if not secrets:
        return config
    return replace(
        config,
        sasl_password=secrets.get("sasl_password", config.sasl_password),
        ssl_password=secrets.get("ssl_password", config.ssl_password),
    )
