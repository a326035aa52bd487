"""Options of `kohort wire` that choose a message and its version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.terminal import fail

if TYPE_CHECKING:
    from kohort.protocol.message import Message

API_HELP: Final = "API (Heartbeat, or its key 12) or any other message (ConsumerProtocolAssignment)."
DirectionOption = Annotated[
    bool | None,
    typer.Option(
        "--response/--request",
        help="Which of an API's two messages; by default the request, unless the name ends in Response.",
    ),
]
VersionOption = Annotated[
    int | None, typer.Option("--version", "-v", metavar="N", help="Version of the message; by default the newest.")
]


def choose_message(name: str, response: bool | None) -> type[Message]:
    """The message that the options name; ends the command if there is none.

    If the name ends in Request or Response, `response` must not contradict it.
    """
    from kohort.protocol.catalogue import find_message
    from kohort.protocol.message import Kind

    try:
        message = find_message(name, response=bool(response))
    except KeyError as error:
        fail(f"{error.args[0]} (see 'kohort wire list' and 'kohort wire list --data')")
    kind = message.__message__.kind
    if response is not None and kind is (Kind.REQUEST if response else Kind.RESPONSE):
        flag = "--response" if response else "--request"
        fail(f"{message.__name__} is a {kind.value}: leave out {flag}")
    return message


def choose_version(message: type[Message], version: int | None) -> int:
    """The version that the options name, or the newest; ends the command if there is no such version."""
    versions = message.__message__.versions
    if version is None:
        return versions[-1]
    if version not in versions:
        fail(f"{message.__name__} has no version {version}; it has {versions[0]} to {versions[-1]}")
    return version
