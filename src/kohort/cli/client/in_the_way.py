"""Who is in a group that was to be changed, and couldn't be as it has members; and what to do about them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeGuard

from kohort.client.administration.group_types import GroupDescription, GroupMember
from kohort.client.errors import ClientError, PartialFailureError
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kohort.client.admin import Admin

__all__ = ["naming_members", "program_and_host", "why_refused"]

_IN_THE_WAY: Final = frozenset({ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})
_NAMED: Final = 5
"""So many are named; of more, the rest is counted."""


@asynccontextmanager
async def naming_members(admin: Admin, *groups: str) -> AsyncIterator[None]:
    """Has errors say who is in these groups, where members are in the way of what is done within it.

    Raises:
        KafkaError, PartialFailureError: those from within, with other texts.
    """
    try:
        yield
    except KafkaError as error:
        if error.code not in _IN_THE_WAY or len(groups) != 1:
            raise
        said = await _said(admin, groups)
        raise KafkaError(error.code, f"group {groups[0]} {said[groups[0]]}" if said else error.detail) from None
    except PartialFailureError as error:
        if len(groups) == 1:  # of its partitions
            told = next(filter(_is_in_the_way, error.errors.values()), None)
            said = await _said(admin, groups) if told is not None and not error.done else {}
            if told is None or not said:
                raise
            raise KafkaError(told.code, f"group {groups[0]} {said[groups[0]]}") from None
        named = {str(each) for each, why in error.errors.items() if _is_in_the_way(why)}
        said = await _said(admin, [each for each in groups if each in named])
        errors = {
            each: KafkaError(why.code, f"it {said[str(each)]}") if _is_in_the_way(why) and str(each) in said else why
            for each, why in error.errors.items()
        }
        raise PartialFailureError(error.done, errors) from None


async def why_refused(admin: Admin, group: str) -> str | None:
    """Who is in a group and has to be stopped first; None for nobody, or if the user may not see it."""
    said = await _said(admin, [group])
    return f"group {group} {said[group]}" if said else None


def members_in_the_way(group: GroupDescription) -> str:
    """Who is in a group, and what to do; members that nobody could tell apart are counted."""
    who = Counter(map(program_and_host, group.members))
    named = [name if count == 1 else f"{name} ({count:,} times)" for name, count in who.most_common(_NAMED)]
    if len(who) > _NAMED:
        named.append(f"{len(who) - _NAMED:,} more")
    return (
        f"is {group.state}, and has {several(len(group.members), 'member')}: {', '.join(named)}; stop them first, "
        "and if one is gone already, wait for its session timeout, or remove it: "
        f"kohort groups remove-members {shlex.quote(group.group_id)} --all"
    )


def program_and_host(member: GroupMember) -> str:
    """What somebody looks for who is to stop it: which program, and where."""
    name = member.client_id or member.member_id
    if member.instance_id is not None:
        name = f"{member.instance_id} (client {member.client_id})" if member.client_id else member.instance_id
    host = member.host.removeprefix("/")
    return f"{name} at {host}" if host else name


def _is_in_the_way(error: Exception) -> TypeGuard[KafkaError]:
    return isinstance(error, KafkaError) and error.code in _IN_THE_WAY


async def _said(admin: Admin, groups: Sequence[str]) -> Mapping[str, str]:
    """What to say of those groups that have members still, as far as the user may see them."""
    if not groups:
        return {}
    try:
        described = await admin.groups.describe(*groups)
    except PartialFailureError as error:
        described = error.done
    except (ClientError, KafkaError):
        return {}
    return {name: members_in_the_way(group) for name, group in described.items() if group.members}
