"""Options of the cluster, and a file's settings of producers and consumers, as arguments of our clients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.client.options import client_settings
from kohort.cli.terminal import fail
from kohort.client.errors import ConfigError

if TYPE_CHECKING:
    from kohort.client.config import ClientConfig

_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The cluster, a file of settings, and the seconds until no broker was found."""

    bootstrap_server: str | None
    config: str | None
    timeout: float

    def arguments(self, client: Callable[..., Any]) -> tuple[ClientConfig, dict[str, Any]]:
        """The cluster, and keyword arguments for `client`; the command ends if the file has wrong ones."""
        cluster, properties = client_settings(self.bootstrap_server, self.config, self.timeout)
        try:
            return cluster, _arguments(client, properties, self.config or "the cluster's profile")
        except ConfigError as error:
            fail(str(error))


def _arguments(client: Callable[..., Any], properties: Mapping[str, str], source: str) -> dict[str, Any]:
    """Keyword arguments for `client` from values by Kafka's keys ("linger.ms"); keys that it doesn't have are ignored.

    Raises:
        ConfigError: a value of the wrong type.
    """
    parameters = inspect.signature(client).parameters
    arguments = {}
    for key, text in properties.items():
        parameter = parameters.get(key.replace(".", "_"))
        if parameter is None or parameter.name.endswith("serializer"):  # a Java class
            continue
        try:
            arguments[parameter.name] = _value(text, parameter)
        except ValueError as error:
            raise ConfigError(f"{source}: {key}={text!r}: {error}") from None
    return arguments


def _value(text: str, parameter: inspect.Parameter) -> Any:
    kind, default = str(parameter.annotation), parameter.default
    if isinstance(default, bool):
        if text.lower() not in _FLAGS:
            raise ValueError("true or false is wanted")
        return _FLAGS[text.lower()]
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(","))
    kinds = kind.split(" | ")
    if isinstance(default, int | float) or "int" in kinds:
        try:
            return int(text)
        except ValueError:
            if "str" in kinds:  # acks=all
                return text
            raise ValueError("a whole number is wanted") from None
    return text
