"""How commands use the admin client: one call to run them, and names that were meant."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer

from kohort.cli.client.failures import explain, no_such
from kohort.cli.client.options import client_config
from kohort.cli.client.running import run
from kohort.cli.terminal import complain, err, fail, printable
from kohort.client.errors import PartialFailureError
from kohort.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupType
    from kohort.client.types import TopicInfo

__all__ = ["administer", "confirm", "known_groups", "known_topics"]

T = TypeVar("T")


def administer(
    bootstrap_server: str | None,
    config: str | None,
    timeout: float,
    body: Callable[[Admin], Awaitable[T]],
    *,
    changes: bool = False,
    endless: bool = False,
) -> T:
    """What `body` makes of an admin client; whatever goes wrong ends the command with a clear line.

    Args:
        bootstrap_server, config, timeout: the options.
        body: the work.
        changes: whether it changes something: of several things, those that went well are named if others failed.
        endless: whether the timeout is for each request alone, since the command runs until it is stopped.
    """
    from kohort.client.admin import Admin  # here, where no clock runs yet

    settings = client_config(bootstrap_server, config, timeout)

    async def work() -> T:
        async with Admin(settings, default_api_timeout_ms=int(timeout * 1000)) as admin:
            try:
                return await body(admin)
            except PartialFailureError as error:
                for subject, each in error.errors.items():
                    complain(f"{subject}: {explain(each)}")
                if changes and error.done:
                    err.print(
                        f"done: {printable(', '.join(map(str, sorted(error.done))))}", markup=False, soft_wrap=True
                    )
                raise typer.Exit(1) from None

    return run(work, None if endless else timeout)


async def known_topics(admin: Admin, names: Collection[str]) -> dict[str, TopicInfo]:
    """The topics of these names; if there is none of one, the command ends and says which was meant, perhaps."""
    try:
        return await admin.topics.describe(*names)
    except (KafkaError, PartialFailureError) as error:
        missing = _missing(error, names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not missing:
            raise
        _no_such("topic", missing, await admin.topics.list(internal=True))


async def known_groups(admin: Admin, names: Collection[str]) -> dict[str, GroupType]:
    """The types of the groups of these names; as `known_topics` for those that there are none of."""
    try:
        return await admin.groups.types(*names)
    except (KafkaError, PartialFailureError) as error:
        missing = _missing(error, names, ErrorCode.GROUP_ID_NOT_FOUND)
        if not missing:
            raise
        _no_such("group", missing, [group.group_id for group in await admin.groups.list()])


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost, where somebody is there who could answer; anything but yes ends the command."""
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    if not typer.confirm(printable(question)):
        fail("nothing was done", 1)


def _missing(error: KafkaError | PartialFailureError, names: Collection[str], code: ErrorCode) -> list[str]:
    if isinstance(error, KafkaError):
        return [*names] if error.code is code else []
    return [name for name, each in error.errors.items() if isinstance(each, KafkaError) and each.code is code]


def _no_such(kind: str, missing: Iterable[str], there: Iterable[str]) -> NoReturn:
    known = [*there]
    for name in missing:
        complain(no_such(kind, name, known))
    raise typer.Exit(1)
