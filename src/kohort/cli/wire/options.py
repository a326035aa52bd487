"""What the commands of `kohort wire` have in common: how a message and its version are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.terminal import fail

if TYPE_CHECKING:
    from kohort.protocol.message import Message

__all__ = ["API_HELP", "DirectionOption", "VersionOption", "choose_message", "choose_version"]

API_HELP: Final = "API (Heartbeat) or any other message (ConsumerProtocolAssignment)."
DirectionOption = Annotated[bool, typer.Option("--response/--request", help="Which of an API's two messages.")]
VersionOption = Annotated[
    int | None, typer.Option("--version", "-v", help="Version of the message; the newest unless given.")
]


def choose_message(name: str, response: bool) -> type[Message]:
    """The message that the options name, or a clear end."""
    from kohort.protocol.catalogue import find_message

    try:
        return find_message(name, response=response)
    except KeyError as error:
        fail(f"{error.args[0]} ('kohort wire list' has them all)")


def choose_version(message: type[Message], version: int | None) -> int:
    """The version that the options name, or the newest; or a clear end."""
    versions = message.__message__.versions
    if version is None:
        return versions[-1]
    if version not in versions:
        fail(f"{message.__name__} has no version {version}; it has {versions[0]} to {versions[-1]}")
    return version
