"""Running a command with an admin client, and checking that topics and groups exist."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer

from kohort.cli.client.errors import explain, not_found
from kohort.cli.client.options import client_config
from kohort.cli.client.run import run
from kohort.cli.terminal import complain, err, fail, printable
from kohort.client.errors import PartialFailureError
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.similar_names import did_you_mean, similar

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupType
    from kohort.client.administration.member_removal import MemberToRemove
    from kohort.client.types import TopicInfo

T = TypeVar("T")


def with_admin(
    bootstrap_server: str | None,
    config: str | None,
    timeout: float,
    body: Callable[[Admin], Awaitable[T]],
    *,
    changes: bool = False,
    endless: bool = False,
) -> T:
    """Runs `body` with an admin client, and returns its result; any failure ends the command with an error line.

    Args:
        changes: whether it changes something; if only a part of it fails, the rest is listed as done.
        endless: whether the timeout is for each request alone, since the command runs until it is stopped.
    """
    from kohort.client.admin import Admin  # imported before the timeout starts

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


async def existing_topics(admin: Admin, names: Collection[str]) -> dict[str, TopicInfo]:
    """The topics of these names; if one doesn't exist, the command ends and suggests a similar name."""
    try:
        return await admin.topics.describe(*names)
    except (KafkaError, PartialFailureError) as error:
        missing = _missing(error, names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not missing:
            raise
        _not_found("topic", missing, await admin.topics.list(internal=True))


async def existing_groups(admin: Admin, names: Collection[str]) -> dict[str, GroupType]:
    """The types of the groups of these names; if one doesn't exist, the same as `existing_topics`."""
    try:
        return await admin.groups.types(*names)
    except (KafkaError, PartialFailureError) as error:
        missing = _missing(error, names, ErrorCode.GROUP_ID_NOT_FOUND)
        if not missing:
            raise
        _not_found("group", missing, [group.group_id for group in await admin.groups.list()])


async def tell_of_a_new_group(admin: Admin, name: str) -> None:
    """Tells that there is no such group yet, for a command that makes it, and which may have been meant."""
    names = [group.group_id for group in await admin.groups.list()]
    if name not in names:
        meant = did_you_mean(name, names)
        err.print(printable(f"there is no group {name!r} yet: this makes it" + (f"; {meant}" if meant else "")))


async def existing_members(
    admin: Admin, group: str, wanted: Sequence[MemberToRemove], clients: Collection[str]
) -> list[MemberToRemove]:
    """These members of a group, and those with these client ids; if one isn't there, the same as `existing_topics`."""
    from kohort.client.administration.member_removal import MemberToRemove

    members = (await admin.groups.describe(group))[group].members
    ids = [member.member_id for member in members]
    static = [member.instance_id for member in members if member.instance_id is not None]
    theirs = [member.client_id for member in members]
    named = [(str(each), "member", static if each.instance_id is not None else ids) for each in wanted]
    missing = False
    for name, what, there in [*named, *((client, "client", theirs) for client in clients)]:
        if name not in there:
            near = [*dict.fromkeys([*(one for one in there if name and one.startswith(name)), *similar(name, there)])]
            hint = f"; did you mean {' or '.join(map(repr, near[:3]))}?" if near else " (see 'kohort groups members')"
            complain(f"group {group} has no such {what}: {name!r}{hint}")
            missing = True
    if missing:
        raise typer.Exit(1)
    told = {str(each) for each in wanted}
    found = [
        each for each in members if each.client_id in clients and told.isdisjoint((each.member_id, each.instance_id))
    ]
    return [*wanted, *(MemberToRemove(each.member_id, each.instance_id) for each in found)]


def confirm(question: str, *, yes: bool) -> None:
    """Asks before something is deleted, in a terminal; any answer but yes ends the command."""
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    if not typer.confirm(printable(question)):
        fail("nothing was done", 1)


def _missing(error: KafkaError | PartialFailureError, names: Collection[str], code: ErrorCode) -> list[str]:
    if isinstance(error, KafkaError):
        return [*names] if error.code is code else []
    return [name for name, each in error.errors.items() if isinstance(each, KafkaError) and each.code is code]


def _not_found(kind: str, missing: Iterable[str], existing: Iterable[str]) -> NoReturn:
    names = [*existing]
    for name in missing:
        complain(not_found(kind, name, names))
    raise typer.Exit(1)
