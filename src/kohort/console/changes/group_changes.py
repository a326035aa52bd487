"""Changes of groups: their offsets, their members, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kohort.client.administration.group_types import GroupDescription, GroupMember
from kohort.client.administration.member_removal import MemberToRemove
from kohort.client.administration.resets import PlannedReset, ResetError, ResetTo, skipped_and_again
from kohort.client.types import TopicPartition
from kohort.console.changes.fields import Fields
from kohort.console.changes.plan import Access, Change, Done, Plan, cell, check_rows, count
from kohort.console.live import Cell
from kohort.console.record_ranges import ChoiceError, parse_time
from kohort.number_ranges import partitions_text
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.similar_names import did_you_mean

TARGETS = ("earliest", "latest", "current", "offset", "time", "shift")
"""Where offsets can be reset to, as `kohort groups reset-offsets` can."""

CALLED: Final = {
    "earliest": "the first record",
    "latest": "the end",
    "current": "the committed offset, or the end",
    "offset": "an offset",
    "time": "a time",
    "shift": "so many records on",
}
"""How forms call the targets."""

_NO_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION})


class ResetOffsets(Change):
    """Moves a group's offsets."""

    action = "reset-offsets"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """What it would do: each partition's offset before and after."""
        group_id = fields.needed("group", "the group")
        to = reset_to(fields)
        topic, numbers = fields.text("topic"), fields.partitions("partitions")
        if numbers is not None and not topic:
            raise ChoiceError("partitions are of a topic: say of which")
        partitions = None if numbers is None else [TopicPartition(topic, each) for each in numbers]
        topics = [topic] if topic and numbers is None else []
        group = await _described(access, group_id)
        try:
            resets = await access.admin.group_offsets.reset(group_id, to, partitions=partitions, topics=topics)
        except ResetError as error:
            raise ChoiceError(str(error)) from None
        except KafkaError as error:
            if topic and error.code in _NO_TOPIC:
                raise ChoiceError(await _no_topic(access, topic)) from None
            raise
        check_rows(len(resets), "partitions")
        moved = {at: each for at, each in resets.items() if each.before != each.after}
        blocked = with_members(group)
        if not moved:
            blocked = "No offset would change." if resets else "The group has no offsets: name a topic."
        return Plan(
            action=self.action,
            target=group_id,
            title=f"Reset the offsets of {group_id}",
            effects=_effects(moved, len(resets) - len(moved)),
            warnings=(
                "Records between offsets are counted by their offsets: fewer are there if some were compacted away.",
            ),
            blocked=blocked,
            columns=("Partition", ">Committed", ">New", "What that means", "Note"),
            rows={str(at): _row(at, each) for at, each in resets.items()},
            work=moved,
            told={"offsets": {str(at): [each.before, each.after] for at, each in moved.items()}},
        )

    async def other(self, access: Access, fields: Fields, plan: Plan) -> Plan | None:
        """The plan now, unless what was shown can still be done: from these offsets, to offsets that still exist."""
        moved: Mapping[TopicPartition, PlannedReset] = plan.work
        group = await _described(access, plan.target)
        to = ResetTo.to_offsets({at: each.after for at, each in moved.items()})
        now = await access.admin.group_offsets.reset(plan.target, to)
        same = all((now[at].before, now[at].after) == (each.before, each.after) for at, each in moved.items())
        return None if same and not group.members else await self.plan(access, fields)

    async def do(self, access: Access, plan: Plan) -> Done:
        """Commits the offsets that were shown, whatever has been written since."""
        to = ResetTo.to_offsets({at: each.after for at, each in plan.work.items()})
        done = await access.admin.group_offsets.reset(plan.target, to, dry_run=False)
        return Done(
            f"The offsets of {plan.target} in {several(len(done), 'partition')} are reset.",
            {"offsets": {str(at): each.after for at, each in done.items()}},
        )


async def _no_topic(access: Access, topic: str) -> str:
    meant = await asyncio.to_thread(did_you_mean, topic, await access.admin.topics.list())
    return f"there is no topic {topic!r}" + (f"; {meant}" if meant else "")


def reset_to(fields: Fields) -> ResetTo:
    """The target that a form gives.

    Raises:
        ChoiceError: it gives none, or one that makes no sense, or something that doesn't count for it.
    """
    wanted = fields.text("to")
    for name in ("offset", "time", "shift"):
        if name != wanted and fields.text(name) and wanted in TARGETS:
            raise ChoiceError(
                f"{CALLED[name]} is filled in, but the offsets are to be reset to {CALLED[wanted]}: "
                f"choose “{CALLED[name]}”, or leave its field empty"
            )
    match fields.text("to"):
        case "earliest":
            return ResetTo.earliest()
        case "latest":
            return ResetTo.latest()
        case "current":
            return ResetTo.current()
        case "offset":
            offset = fields.whole("offset", "the offset")
            if offset is None:
                raise ChoiceError("the offset is missing")
            return ResetTo.offset(offset)
        case "time":
            return ResetTo.time(parse_time(fields.text("time")))
        case "shift":
            shift = fields.whole("shift", "the number of records to shift by", least=-(10**18))
            if shift is None:
                raise ChoiceError("the number of records to shift by is missing")
            return ResetTo.shift(shift)
        case text:
            raise ChoiceError(f"offsets are reset to {', '.join(TARGETS)}, not {text!r}")


def _effects(moved: Mapping[TopicPartition, PlannedReset], stay: int) -> tuple[str, ...]:
    skipped, again = skipped_and_again(moved.values())
    new = sum(each.before is None for each in moved.values())
    found = []
    if skipped:
        are, them = ("is", "it") if skipped == 1 else ("are", "them")
        found.append(f"{several(skipped, 'record')} {are} skipped: the group won't read {them}.")
    if again:
        found.append(f"{several(again, 'record')} {'is' if again == 1 else 'are'} read again.")
    if new:
        found.append(f"{several(new, 'partition')} without an offset {'gets' if new == 1 else 'get'} one.")
    if stay and moved:
        found.append(f"{several(stay, 'partition')} {'stays as it is' if stay == 1 else 'stay as they are'}.")
    return tuple(found)


def _row(at: TopicPartition, each: PlannedReset) -> tuple[Cell, ...]:
    if each.before is None:
        effect = Cell("gets its first offset")
    elif each.after > each.before:
        effect = Cell(f"skips {several(each.skipped, 'record')}", tone="warn")
    elif each.after < each.before:
        effect = Cell(f"reads {several(-each.skipped, 'record')} again", tone="warn")
    else:
        effect = Cell("stays")
    return cell(at), count(each.before), count(each.after), effect, cell(each.note)


class RemoveMembers(Change):
    """Removes members from a group."""

    action = "remove-members"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """Which members it would remove, and what they have."""
        group = await _described(access, fields.needed("group", "the group"))
        wanted = {*fields.several("member")}
        everybody = fields.text("all") == "yes"
        if not wanted and not everybody:
            raise ChoiceError("choose members, or all of them")
        found = [each for each in group.members if everybody or each.member_id in wanted]
        check_rows(len(found), "members")
        gone = 0 if everybody else len(wanted) - len(found)
        return Plan(
            action=self.action,
            target=group.group_id,
            title=f"Remove members from {group.group_id}",
            effects=(
                f"{several(len(found), 'member')} of {len(group.members):,} to remove; what they have goes to others.",
            ),
            warnings=(
                *((f"{gone:,} of those that were chosen aren't in the group any more.",) if gone else ()),
                "Members that are alive come back by themselves; static ones that are gone don't.",
            ),
            blocked="" if found else "Nobody of those is in the group.",
            columns=("Member", "Static name", "Client", "Host", "Has"),
            rows={each.member_id: _member_row(each) for each in found},
            basis=frozenset((each.member_id, each.instance_id) for each in found),
            work=[MemberToRemove(each.member_id, each.instance_id) for each in found],
            told={"members": [{"id": each.member_id, "instance": each.instance_id} for each in found]},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Removes them."""
        removed = await access.admin.groups.remove_members(plan.target, plan.work, reason="removed by the console")
        return Done(f"{several(len(removed), 'member')} removed from {plan.target}.", {"removed": len(removed)})


def _member_row(member: GroupMember) -> tuple[Cell, ...]:
    has = partitions_text(sorted(member.streams.tasks) if member.streams is not None else member.partitions)
    host = member.host.removeprefix("/")
    return cell(member.member_id), cell(member.instance_id), cell(member.client_id), cell(host), cell(has or None)


class DeleteGroup(Change):
    """Deletes a group with its offsets."""

    action = "delete-group"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """Which offsets would be gone with it."""
        group_id = fields.needed("group", "the group")
        group, lag = await asyncio.gather(_described(access, group_id), access.admin.group_offsets.lag(group_id))
        check_rows(len(lag), "partitions")
        committed = {at: each.committed for at, each in lag.items()}
        return Plan(
            action=self.action,
            target=group_id,
            title=f"Delete the group {group_id}",
            effects=(f"The group is gone, with its offsets in {several(len(lag), 'partition')}.",),
            warnings=("A member that starts anew begins where its own settings say: at the beginning, or at the end.",),
            blocked=with_members(group),
            columns=("Partition", ">Committed", ">End", ">Lag"),
            rows={str(at): (cell(at), *map(count, (each.committed, each.end, each.lag))) for at, each in lag.items()},
            basis=frozenset(committed.items()),
            told={"type": group.type.value, "offsets": {str(at): offset for at, offset in committed.items()}},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Deletes it."""
        await access.admin.groups.delete(plan.target)
        return Done(f"The group {plan.target} is deleted.")


async def _described(access: Access, group_id: str) -> GroupDescription:
    return (await access.admin.groups.describe(group_id))[group_id]


def with_members(group: GroupDescription) -> str:
    """Why nothing can be done to a group that has members; "" if it has none."""
    if not group.members:
        return ""
    return f"The group has {several(len(group.members), 'member')}: stop them first."
