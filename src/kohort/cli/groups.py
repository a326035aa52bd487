"""`kohort groups`."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kohort.cli.client import completion
from kohort.cli.client.admin import (
    confirm,
    existing_groups,
    existing_members,
    existing_topics,
    tell_of_a_new_group,
    with_admin,
)
from kohort.cli.client.arguments import parse_partitions
from kohort.cli.client.elsewhere import ELSEWHERE
from kohort.cli.client.in_the_way import naming_members, why_refused
from kohort.cli.client.listing_options import LimitOption, PatternOption, first, name_filter
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.client.reset_options import reset_target
from kohort.cli.client.watch import Shown, WatchCommand, WatchOption, watch
from kohort.cli.terminal import err, fail, out, print_json, printable
from kohort.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

    from kohort.cli.client.group_report import GroupReport
    from kohort.client.admin import Admin
    from kohort.client.administration.member_removal import MemberToRemove
    from kohort.client.administration.resets import PlannedReset
    from kohort.client.types import TopicPartition


class _Commands(TyperGroup):
    """Says what shows a group, to somebody who names one where a command is wanted."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name == "lag" and not ctx.resilient_parsing:
            fail(f"there is no command 'lag'; {ELSEWHERE['lag']}")
        unknown = name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing
        if unknown and not get_close_matches(name, self.commands):  # typer names those that are like it
            fail(f"there is no command {name!r}; to see a group: kohort groups describe {name}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)

TYPES = ("classic", "consumer", "streams", "share")
STATES = (
    "Stable", "Empty", "Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance", "NotReady", "Dead",
)  # fmt: skip

GroupsArgument = Annotated[
    list[str], typer.Argument(metavar="GROUP…", help="Their names.", autocompletion=completion.groups)
]
TopicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:0,3-5]",
        help="A topic, or some of its partitions. Repeatable.",
        autocompletion=completion.topics,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


@app.command("list")
def list_groups(
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help=f"Only {', '.join(TYPES)} groups. Repeatable.",
            autocompletion=completion.words(*TYPES),
        ),
    ] = None,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"Only groups in this state: {', '.join(STATES)}. Repeatable.",
            autocompletion=completion.words(*STATES),
        ),
    ] = None,
    pattern: PatternOption = None,
    limit: LimitOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List the groups of every type.

    kohort groups list --type streams --state Stable
    """
    wanted = name_filter(pattern)
    for each in types or []:
        if each not in TYPES:
            fail(f"--type {each}: one of {', '.join(TYPES)} is wanted")
    for each in states or []:
        if each.lower() not in map(str.lower, STATES):
            fail(f"--state {each}: one of {', '.join(STATES)} is wanted")
    listed = with_admin(
        bootstrap_server, config, timeout, lambda admin: admin.groups.list(types=types or (), states=states or ())
    )
    groups = first((each for each in listed if wanted(each.group_id)), limit)
    from kohort.cli.client.group_report import groups_table, listing_as_json

    if as_json:
        print_json([listing_as_json(group) for group in groups])
    elif groups:
        out.print(groups_table(groups))
    else:
        err.print("no such groups" if types or states or pattern else "no groups yet")


@app.command(cls=WatchCommand)
def describe(
    groups: GroupsArgument,
    watch_every: WatchOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show groups of any type: members, epochs, assignments, offsets and lag.

    kohort groups describe word-count --watch

    Of a streams group, members have tasks by role: active, standby, warm-up, as subtopology: partitions.
    """
    from kohort.cli.client.group_report import group_as_json, group_tables, read_groups

    async def look(admin: Admin) -> Shown:
        reports = await read_groups(admin, groups)
        return [part for report in reports for part in group_tables(report)], [group_as_json(each) for each in reports]

    async def work(admin: Admin) -> None:
        await existing_groups(admin, groups)
        if watch_every is not None:
            await watch(lambda: look(admin), watch_every, as_json=as_json)
            return
        tables, document = await look(admin)
        if as_json:
            print_json(document)
        else:
            out.print(*tables, sep="\n")

    with_admin(bootstrap_server, config, timeout, work, endless=watch_every is not None)


@app.command()
def members(
    groups: GroupsArgument,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show only the members of groups of any type, with their assignments.

    kohort groups members word-count
    """
    from kohort.cli.client.group_report import group_as_json, members_tables

    reports = _read(groups, bootstrap_server, config, timeout)
    if as_json:
        print_json([{key: group_as_json(each)[key] for key in ("group_id", "type", "members")} for each in reports])
    else:
        out.print(*(part for report in reports for part in members_tables(report)), sep="\n")


@app.command()
def offsets(
    groups: GroupsArgument,
    topics: TopicOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show only the offsets and the lag of groups of any type; of share groups, also what is in flight.

    kohort groups offsets word-count --topic flights
    """
    from kohort.cli.client.group_report import group_as_json, offsets_tables

    names, chosen = parse_partitions(topics or [], "--topic")
    reports = _read(groups, bootstrap_server, config, timeout)
    if topics:
        read = {at for report in reports for at in report.lag}
        existing = {at.topic for at in read}
        missing = [at for at in chosen if at.topic in existing and at not in read]
        for name in dict.fromkeys([*names, *(at.topic for at in chosen)]):
            if name not in existing:
                meant = did_you_mean(name, existing)
                fail(f"{', '.join(groups)} has no offsets of topic {name!r}" + (f"; {meant}" if meant else ""), 1)
        if missing:
            fail(f"{', '.join(groups)} has no offsets of {', '.join(map(str, missing))}", 1)
        reports = [
            report.of_partitions(at for at in report.lag if at.topic in names or at in chosen) for report in reports
        ]
    if as_json:
        print_json([{key: group_as_json(each)[key] for key in ("group_id", "type", "offsets")} for each in reports])
        return
    for report in reports:
        out.print(*(offsets_tables(report) or [f"{printable(report.group.group_id)} has no offsets"]), sep="\n")


def _read(groups: list[str], bootstrap_server: str | None, config: str | None, timeout: float) -> list[GroupReport]:
    from kohort.cli.client.group_report import read_groups

    async def work(admin: Admin) -> list[GroupReport]:
        await existing_groups(admin, groups)
        return await read_groups(admin, groups)

    return with_admin(bootstrap_server, config, timeout, work)


@app.command()
def delete(
    groups: GroupsArgument,
    yes: YesOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete groups that have no members, with their offsets.

    kohort groups delete word-count
    """
    with_admin(bootstrap_server, config, timeout, lambda admin: existing_groups(admin, groups))
    confirm(f"Delete {', '.join(groups)} with all offsets?", yes=yes)

    async def work(admin: Admin) -> None:
        async with naming_members(admin, *groups):
            await admin.groups.delete(*groups)

    with_admin(bootstrap_server, config, timeout, work, changes=True)
    typer.echo(f"deleted {', '.join(map(printable, groups))}")


@app.command("reset-offsets")
def reset_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Its name.", autocompletion=completion.groups)],
    topics: TopicOption = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To its committed offset, or the end.")] = False,
    to_offset: Annotated[str | None, typer.Option(metavar="OFFSET", help="To one offset.")] = None,
    shift_by: Annotated[str | None, typer.Option(metavar="N", help="N records on, or back if negative.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="To the first record of then: 2026-01-31T08:00 (UTC), or ms since 1970."),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="To the first record of so long ago: 15m, 1h, 7d, PT1H30M.")
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="To the offsets in lines of topic,partition,offset, as --export writes."),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without, only show it.")] = False,
    export: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the new offsets, as topic,partition,offset.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Move a group's offsets, or show where they would go.

    Nothing is changed without --execute, for which all members must be stopped. Without --topic, it applies to all
    partitions that the group has committed offsets for.

    kohort groups reset-offsets word-count --to-earliest

    kohort groups reset-offsets word-count --topic flights --topic weather:0,3-5 --by-duration 1h --execute
    """
    to = reset_target(
        earliest=to_earliest,
        latest=to_latest,
        current=to_current,
        offset=to_offset,
        shift=shift_by,
        time=to_datetime,
        ago=by_duration,
        file=from_file,
    )
    names, chosen = parse_partitions(topics or [], "--topic")
    if to.offsets and (names or chosen):
        fail("--from-file says which partitions; leave out --topic")

    async def work(admin: Admin) -> tuple[dict[TopicPartition, PlannedReset], str | None]:
        wanted = {*names, *(at.topic for at in (*chosen, *to.offsets))}
        if wanted:
            await existing_topics(admin, wanted)
            await tell_of_a_new_group(admin, group)
        else:
            await existing_groups(admin, [group])
        async with naming_members(admin, group):
            planned = await admin.group_offsets.reset(
                group, to, partitions=chosen or None, topics=names, dry_run=not execute
            )
        return planned, None if execute or as_json else await why_refused(admin, group)

    planned, refused = with_admin(bootstrap_server, config, timeout, work, changes=execute)
    if export is not None:
        _export(planned, export)
        err.print(printable(f"the new offsets are in {export}"))
    if as_json:
        rows = [{"topic": at.topic, "partition": at.partition, **each._asdict()} for at, each in planned.items()]
        print_json({"group_id": group, "executed": execute, "offsets": rows})
        return
    _print_reset(planned, executed=execute, refused=refused)


@app.command("delete-offsets")
def delete_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Its name.", autocompletion=completion.groups)],
    topics: TopicOption = None,
    yes: YesOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete a group's offsets of topics that it no longer reads.

    kohort groups delete-offsets word-count --topic flights
    """
    names, chosen = parse_partitions(topics or [], "--topic")
    if not names and not chosen:
        fail("which offsets? Give --topic")

    async def find(admin: Admin) -> list[TopicPartition]:
        await existing_groups(admin, [group])
        committed = await admin.group_offsets.committed(group)
        return [at for at in committed if at.topic in names or at in chosen]

    found = with_admin(bootstrap_server, config, timeout, find)
    if not found:
        fail(f"group {group} has no such offsets", 1)
    confirm(f"Delete the offsets of {group} in {', '.join(map(str, found))}?", yes=yes)

    async def work(admin: Admin) -> None:
        async with naming_members(admin, group):
            await admin.group_offsets.delete(group, found)

    with_admin(bootstrap_server, config, timeout, work, changes=True)
    typer.echo(f"deleted the offsets of {printable(group)} in {', '.join(printable(str(at)) for at in found)}")


@app.command("remove-members")
def remove_members(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Its name.", autocompletion=completion.groups)],
    members: Annotated[
        list[str] | None, typer.Option("--member", metavar="ID", help="By member id. Repeatable.")
    ] = None,
    instances: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="NAME", help="By static name (group.instance.id). Repeatable."),
    ] = None,
    clients: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="ID", help="All members with this client id. Repeatable."),
    ] = None,
    all_members: Annotated[bool, typer.Option("--all", help="All members.")] = False,
    yes: YesOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Remove members from a group. Those that are alive come back; static members that are gone don't.

    kohort groups remove-members word-count --instance worker-3

    kohort groups remove-members word-count --client flights-loader
    """
    from kohort.client.administration.member_removal import MemberToRemove

    wanted = [*map(MemberToRemove, members or []), *(MemberToRemove("", name) for name in instances or [])]
    if bool(wanted or clients) == all_members:
        fail("which members? Give --member, --instance or --client, or else --all")

    async def look(admin: Admin) -> list[MemberToRemove]:
        await existing_groups(admin, [group])
        return [] if all_members else await existing_members(admin, group, wanted, clients or [])

    wanted = with_admin(bootstrap_server, config, timeout, look)
    confirm(f"Remove {'all members' if all_members else ', '.join(map(str, wanted))} from {group}?", yes=yes)

    async def work(admin: Admin) -> tuple[MemberToRemove, ...]:
        return await admin.groups.remove_members(group, None if all_members else wanted)

    removed = with_admin(bootstrap_server, config, timeout, work, changes=True)
    typer.echo(f"removed {', '.join(printable(str(each)) for each in removed) or 'no members'}")


def _export(planned: dict[TopicPartition, PlannedReset], path: str) -> None:
    try:
        Path(path).write_text(
            "".join(f"{at.topic},{at.partition},{each.after}\n" for at, each in planned.items()), encoding="utf-8"
        )
    except OSError as error:
        fail(f"--export: can't write {path}: {error.strerror or error}", 1)


def _cost(reset: PlannedReset) -> str:
    """What a reset means for who reads."""
    if reset.before is None or reset.before == reset.after:
        return ""
    return f"skips {reset.skipped:,}" if reset.after > reset.before else f"reads {-reset.skipped:,} again"


def _in_all(resets: Collection[PlannedReset]) -> str:
    """What the resets mean together; "" if each partition stays, or has no offset yet."""
    from kohort.client.administration.resets import skipped_and_again

    skipped, again = skipped_and_again(resets)
    parts = ([f"skips {skipped:,}"] if skipped else []) + ([f"reads {again:,} again"] if again else [])
    return ", ".join(parts)


def _print_reset(planned: dict[TopicPartition, PlannedReset], *, executed: bool, refused: str | None) -> None:
    """Prints a table; `refused`: why --execute would be, to the end of a dry run."""
    from kohort.cli.client.tables import table

    if not planned:
        err.print("nothing to reset: the group has no offsets; --topic names partitions")
        return
    rows: list[tuple[object, ...]] = [
        (at.topic, str(at.partition), each.before, each.after, _cost(each), each.note) for at, each in planned.items()
    ]
    if len(planned) > 1 and (total := _in_all(planned.values())):
        rows.append(("in all", "", "", "", total, ""))
    out.print(table(("Topic", ">Partition", ">Committed", ">New" if executed else ">Would be", "", ""), rows))
    if not executed:
        err.print("nothing is changed yet; --execute does it, with all members stopped")
        if refused is not None:
            err.print(printable(f"now --execute would be refused: {refused}"))
