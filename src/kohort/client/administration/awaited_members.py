"""Who a group waits for while it is about to give out partitions or tasks anew.

Members of consumer, streams and share groups say which epoch they have come to, and the group knows what each is to
have, once the broker has placed it. Of classic groups `kohort serve` tells what those have joined with that have joined
again; Apache Kafka doesn't.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.plurals import several
from kohort.short_names import short_names

UNDER_WAY: Final = frozenset({"assigning", "reconciling", "preparingrebalance", "completingrebalance"})
"""States of groups whose members don't all have what they are to have, in lower case."""


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
    lacking = awaited_members(group)
    names = short_names([member.member_id for member in group.members])
    waited = [
        f"{member.instance_id or names[member.member_id]} ({lacking[member.member_id]})"
        for member in group.members
        if member.member_id in lacking
    ]
    return [f"waiting for {', '.join(waited)}"] if waited else []


def awaited_members(group: GroupDescription) -> Mapping[str, str]:
    """What each member that the group waits for has yet to do, by its id; nothing while that isn't known."""
    state = group.state.lower()
    if group.type is GroupType.CLASSIC:
        missing = [member.member_id for member in group.members if not member.has_metadata]
        known = state == "preparingrebalance" and len(missing) < len(group.members)
        return dict.fromkeys(missing, "has to join again") if known else {}
    if state not in UNDER_WAY or state == "assigning":
        return {}
    lacking = ((member.member_id, _lacks(group, member)) for member in group.members)
    return {member_id: why for member_id, why in lacking if why is not None}


def _preparing(group: GroupDescription) -> str:
    """Who of a classic group has to join again, as far as the broker tells who has."""
    names = short_names([member.member_id for member in group.members])
    missing = awaited_members(group)
    if not missing:
        return "a rebalance is being prepared: members that are here have to join again, or be dropped in the end"
    listed = ", ".join(
        member.instance_id or names[member.member_id] for member in group.members if member.member_id in missing
    )
    return f"waiting for {listed} to join again: who doesn't within its rebalance timeout is dropped"


def _lacks(group: GroupDescription, member: GroupMember) -> str | None:
    """What a member has yet to do; None if it is where the group wants it."""
    if member.streams is not None and member.streams.tasks != member.streams.target_tasks:
        given_up = member.streams.tasks.keys() - member.streams.target_tasks.keys()
        return f"has {several(len(given_up), 'task')} to give up" if given_up else "has tasks to come"
    if member.target is not None and member.streams is None and set(member.target) != set(member.partitions):
        given_up_partitions = set(member.partitions) - set(member.target)
        if given_up_partitions:
            return f"has {several(len(given_up_partitions), 'partition')} to give up"
        return "has partitions to come"
    if member.epoch is not None and group.epoch is not None and 0 <= member.epoch < group.epoch:
        return f"is in epoch {member.epoch} of {group.epoch}"
    return None
