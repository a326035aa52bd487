"""Who a group waits for while it is about to give out partitions or tasks anew.

Members of consumer, streams and share groups say which epoch they have come to, and the group knows what each is to
have, once the broker has placed it. Of classic groups `kohort serve` tells what those have joined with that have joined
again; Apache Kafka doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.plurals import several
from kohort.short_names import short_names

UNDER_WAY: Final = frozenset({"assigning", "reconciling", "preparingrebalance", "completingrebalance"})
"""States of groups whose members don't all have what they are to have, in lower case."""

_TO_COME: Final = "to come"
_TO_GIVE_UP: Final = "to give up"


def awaited(group: GroupDescription) -> list[str]:
    """Sentences for a group's header; none for a group that waits for nobody."""
    state = group.state.lower()
    if state not in UNDER_WAY:
        return []
    if group.type is GroupType.CLASSIC:
        if state == "preparingrebalance":
            return [_preparing(group)]
        return ["a rebalance is being completed: members wait for what their leader assigns"]
    if state == "assigning":  # epochs are ahead of what is placed: members can't come to them yet
        return ["waiting for the broker to place what there is"]
    lacking = _lacking(group)
    members = awaited_members(group)
    coming = [member for member in members if lacking[member.member_id].endswith(_TO_COME)]
    if not coming or len(coming) == len(members):
        return [f"waiting for {', '.join(called(group, members, lacking))}"] if members else []
    whom, others = (called(group, each, lacking) for each in (members[: -len(coming)], coming))
    return [f"waiting for {', '.join(whom)}; others wait, too: {', '.join(others)}"]


def awaited_members(group: GroupDescription) -> list[GroupMember]:
    """Those whom the group waits for, as far as the brokers tell; none for a group that waits for nobody."""
    state = group.state.lower()
    if state not in UNDER_WAY or state == "assigning":
        return []
    if group.type is GroupType.CLASSIC:
        return [member for member in group.members if not member.has_metadata] if state == "preparingrebalance" else []
    lacking = _lacking(group)
    found = [member for member in group.members if member.member_id in lacking]
    return sorted(found, key=lambda member: lacking[member.member_id].endswith(_TO_COME))  # they wait for the others


def holding_up(group: GroupDescription) -> list[GroupMember]:
    """Those of `awaited_members` whom the others wait for: who has something to give up; all, if nobody has."""
    members = awaited_members(group)
    lacking = {} if group.type is GroupType.CLASSIC else _lacking(group)
    return [member for member in members if lacking.get(member.member_id, "").endswith(_TO_GIVE_UP)] or members


def why_awaited(group: GroupDescription) -> Mapping[str, str]:
    """What each of `awaited_members` has yet to do, by its id."""
    lacking = {} if group.type is GroupType.CLASSIC else _lacking(group)
    return {member.member_id: lacking.get(member.member_id, "has to join again") for member in awaited_members(group)}


def _preparing(group: GroupDescription) -> str:
    """Who of a classic group has to join again, as far as the broker tells who has."""
    missing = awaited_members(group)
    listed = ", ".join(called(group, missing))
    if missing and len(missing) == len(group.members):
        whoever = f"all {len(missing)} members have" if len(missing) > 1 else f"{listed} has"
        return f"{whoever} yet to join again, as far as the broker tells (they hear of it with their next heartbeat)"
    if not missing:
        return "a rebalance is being prepared: more members may come before partitions are handed out"
    return f"waiting for {listed} to join again: who doesn't within its rebalance timeout is dropped"


def called(group: GroupDescription, members: Iterable[GroupMember], why: Mapping[str, str] | None = None) -> list[str]:
    """What members are called: by static names, or short ids with the client's where the id doesn't begin with it."""
    short = short_names([member.member_id for member in group.members])
    called = []
    for member in members:
        name, more = member.instance_id or short[member.member_id], []
        if member.instance_id is None and member.client_id and not member.member_id.startswith(member.client_id):
            name, more = member.client_id, [name]
        more += [why[member.member_id]] if why is not None else []
        called.append(f"{name} ({', '.join(more)})" if more else name)
    return called


def _lacking(group: GroupDescription) -> dict[str, str]:
    """What each member has yet to do, by its id, where members have epochs or targets."""
    return {member.member_id: why for member in group.members if (why := _lacks(group, member)) is not None}


def _lacks(group: GroupDescription, member: GroupMember) -> str | None:
    """What a member has yet to do; None if it is where the group wants it."""
    if member.streams is not None and member.streams.tasks != member.streams.target_tasks:
        given_up = member.streams.tasks.keys() - member.streams.target_tasks.keys()
        return f"has {several(len(given_up), 'task')} {_TO_GIVE_UP}" if given_up else f"has tasks {_TO_COME}"
    if member.target is not None and member.streams is None and set(member.target) != set(member.partitions):
        given_up_partitions = set(member.partitions) - set(member.target)
        if given_up_partitions:
            return f"has {several(len(given_up_partitions), 'partition')} {_TO_GIVE_UP}"
        return f"has partitions {_TO_COME}"
    if member.epoch is not None and group.epoch is not None and 0 <= member.epoch < group.epoch:
        return f"is in epoch {member.epoch} of {group.epoch}"
    return None
