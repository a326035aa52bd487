"""What is said while no broker answers: which are asked, why that fails, and how to start one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kohort.client.addresses import DEFAULT_PORT, address_text
from kohort.client.config import ClientConfig
from kohort.client.frame_reader import HTTP_ANSWER

_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


NO_ANSWER_YET: Final = "no answer yet"
"""The reason while the first attempt is under way: a broker may be there, and slow, or its login."""


def no_broker_yet(config: ClientConfig, reason: str) -> str:
    """A sentence for `ClientConfig.on_no_broker`; how to start a broker is said where one would be on this machine."""
    servers = ", ".join(map(address_text, config.addresses))
    if reason == NO_ANSWER_YET:
        return f"no broker has answered yet at {servers}"
    advice = "a broker's port is another, mostly 9092" if HTTP_ANSWER in reason else _advice(config)
    return f"no broker answers at {servers} ({reason}); {advice}"


def telling(config: ClientConfig, tell: Callable[[str], object]) -> ClientConfig:
    """The same configuration, of which clients tell `no_broker_yet`, too, each time that they call `on_no_broker`."""
    before = config.on_no_broker

    def each(reason: str) -> None:
        if before is not None:
            before(reason)
        tell(no_broker_yet(config, reason))

    return replace(config, on_no_broker=each)


def saying_once(config: ClientConfig, say: Callable[[str], object]) -> ClientConfig:
    """As `telling`, but a first reason alone; and one more where there was none but `NO_ANSWER_YET`."""
    unknown = no_broker_yet(config, NO_ANSWER_YET)
    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said and said <= {unknown}:
            said.add(text)
            say(text)

    return telling(config, once)


def _advice(config: ClientConfig) -> str:
    local = next(((host, port) for host, port in config.addresses if host in _HERE), None)
    if local is None or config.uses_tls != config.uses_sasl:  # `--secure` has both
        return "is it running, and can it be reached from here?"
    host, port = "[::1]" if local[0] == "::1" else "127.0.0.1", local[1]
    at = "" if (host, port) == ("127.0.0.1", DEFAULT_PORT) else f" --listen {host}:{port}"
    how = "--secure DIR" if config.uses_tls else "--ephemeral"
    return f"`kohort serve {how}{at}` starts one here"
