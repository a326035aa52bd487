"""What is said while no broker answers: which are asked, why that fails, and how to start one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kohort.client.addresses import DEFAULT_PORT
from kohort.client.config import ClientConfig

_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def no_broker_yet(config: ClientConfig, reason: str) -> str:
    """A sentence for `ClientConfig.on_no_broker`; how to start a broker is said where one would be on this machine."""
    servers = ", ".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in config.addresses)
    return f"no broker answers at {servers} ({reason}); {_advice(config)}"


def saying_once(config: ClientConfig, say: Callable[[str], object]) -> ClientConfig:
    """The same configuration, of which clients say `no_broker_yet` once when they begin to wait."""
    said: list[str] = []

    def tell(reason: str) -> None:
        if not said:
            said.append(reason)
            say(no_broker_yet(config, reason))

    return replace(config, on_no_broker=tell)


def _advice(config: ClientConfig) -> str:
    local = next(((host, port) for host, port in config.addresses if host in _HERE), None)
    if local is None:
        return "is it running, and can it be reached from here?"
    if config.uses_tls or config.uses_sasl:
        return "`kohort serve --secure DIR` starts one here"
    host, port = "[::1]" if local[0] == "::1" else "127.0.0.1", local[1]
    at = "" if (host, port) == ("127.0.0.1", DEFAULT_PORT) else f" --listen {host}:{port}"
    return f"`kohort serve --ephemeral{at}` starts one here"
