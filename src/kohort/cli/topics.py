"""`kohort topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.client import completion
from kohort.cli.client.admin import confirm, existing_topics, with_admin
from kohort.cli.client.arguments import parse_partitions, parse_settings
from kohort.cli.client.listing_options import LimitOption, PatternOption, first, name_filter
from kohort.cli.client.options import (
    DEFAULT_TIMEOUT,
    BootstrapOption,
    ConfigOption,
    InternalOption,
    JsonOption,
    TimeoutOption,
)
from kohort.cli.terminal import err, fail, out, print_json, printable
from kohort.plurals import several

if TYPE_CHECKING:
    from kohort.client.admin import Admin

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as retention.ms=3600000. Repeatable."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


@app.command("list")
def list_topics(
    pattern: PatternOption = None,
    limit: LimitOption = None,
    internal: InternalOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List the topics: partitions, replicas, and their health.

    kohort topics list --pattern 'orders-.*'
    """
    wanted = name_filter(pattern)
    there = with_admin(bootstrap_server, config, timeout, lambda admin: admin.topics.list(internal=internal))
    topics = first((topic for name, topic in there.items() if wanted(name)), limit)
    from kohort.cli.client.topic_report import topics_as_json, topics_table

    if as_json:
        print_json(topics_as_json(topics))
    elif topics:
        out.print(topics_table(topics))
    elif there:
        err.print("no such topics")
    else:
        err.print("no topics yet; 'kohort topics create NAME' makes one")


@app.command()
def create(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC…", help="Their names.")],
    partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of partitions; the cluster's default unless given.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Replicas of each; the cluster's default unless given.")
    ] = None,
    settings: SetOption = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(
            metavar="1:2,2:3,…",
            help="The brokers of each partition, the preferred leader first; instead of the two numbers.",
        ),
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Skip topics that exist.")] = False,
    validate_only: Annotated[
        bool, typer.Option("--dry-run", "--validate-only", help="Only check; change nothing.")
    ] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Create topics.

    kohort topics create flights --partitions 4

    kohort topics create counts --partitions 8 --set cleanup.policy=compact --set min.cleanable.dirty.ratio=0.1
    """
    from kohort.client.administration.topics import CreatedTopic, NewTopic

    configs = parse_settings(settings or [], "--set")
    assignments = None if replica_assignment is None else _parse_assignment(replica_assignment)
    try:
        wanted = [NewTopic(name, partitions, replication_factor, configs, assignments) for name in topics]
    except ValueError:
        fail("--replica-assignment says how many partitions and replicas there are; leave these options out")

    async def work(admin: Admin) -> dict[str, CreatedTopic]:
        there = await admin.topics.list(internal=True) if if_not_exists else {}
        missing = [topic for topic in wanted if topic.name not in there]
        return await admin.topics.create(*missing, validate_only=validate_only) if missing else {}

    created = with_admin(bootstrap_server, config, timeout, work, changes=not validate_only)
    if as_json:
        from kohort.cli.client.topic_report import created_as_json

        print_json([created_as_json(topic) for topic in created.values()])
        return
    for name in dict.fromkeys(topics):
        topic = created.get(name)
        if topic is None:
            typer.echo(f"{printable(name)} exists already")
            continue
        size = "" if topic.partitions is None else f" with {several(topic.partitions, 'partition')}"
        if topic.replication_factor is not None:
            size += f", {several(topic.replication_factor, 'replica')} each"
        typer.echo(f"{'could create' if validate_only else 'created'} {printable(name)}{size}")


@app.command()
def describe(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC…", help="Their names.", autocompletion=completion.topics)
    ],
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show topics: settings that differ from the defaults, leaders, replicas and offsets of each partition.

    kohort topics describe flights
    """
    from kohort.cli.client.topic_report import TopicReport, read_topics, topic_as_json, topic_tables

    async def work(admin: Admin) -> list[TopicReport]:
        return await read_topics(admin, await existing_topics(admin, topics))

    reports = with_admin(bootstrap_server, config, timeout, work)
    if as_json:
        print_json([topic_as_json(report) for report in reports])
        return
    for report in reports:
        out.print(*topic_tables(report), sep="\n")


@app.command()
def alter(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC…", help="Their names.", autocompletion=completion.topics)
    ],
    partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="New total number; it can only grow.")
    ] = None,
    settings: SetOption = None,
    delete_settings: Annotated[
        list[str] | None, typer.Option("--unset", metavar="KEY", help="Back to the default. Repeatable.")
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--dry-run", "--validate-only", help="Only check; change nothing.")
    ] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Give topics more partitions, or other settings.

    kohort topics alter flights --partitions 8 --set retention.ms=86400000 --unset max.message.bytes
    """
    from kohort.client.administration.configs import ConfigResource, ResourceType

    changes = parse_settings(settings or [], "--set")
    if partitions is None and not changes and not delete_settings:
        fail("nothing to alter: give --partitions, --set or --unset")

    async def work(admin: Admin) -> None:
        await existing_topics(admin, topics)
        if changes or delete_settings:
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
            await admin.configs.alter(
                *resources, set=changes, delete=delete_settings or (), validate_only=validate_only
            )
        if partitions is not None:
            for name in topics:
                await admin.topics.add_partitions(name, partitions, validate_only=validate_only)

    with_admin(bootstrap_server, config, timeout, work, changes=not validate_only)
    typer.echo(f"{'could alter' if validate_only else 'altered'} {', '.join(map(printable, topics))}")


@app.command()
def delete(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC…", help="Their names.", autocompletion=completion.topics)
    ],
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that don't exist.")] = False,
    yes: YesOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete topics with all their records.

    kohort topics delete flights weather
    """

    async def find(admin: Admin) -> list[str]:
        if if_exists:
            there = await admin.topics.list(internal=True)
            return [name for name in dict.fromkeys(topics) if name in there]
        return [*await existing_topics(admin, topics)]

    found = with_admin(bootstrap_server, config, timeout, find)
    if found:
        confirm(f"Delete {', '.join(found)} with all records?", yes=yes)
        with_admin(bootstrap_server, config, timeout, lambda admin: admin.topics.delete(*found), changes=True)
    typer.echo(f"deleted {', '.join(map(printable, found)) or 'nothing'}")


@app.command("delete-records")
def delete_records(
    partitions: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:0,3-5]…", help="Topics, or some of their partitions.", autocompletion=completion.topics
        ),
    ],
    before: Annotated[
        str, typer.Option(metavar="OFFSET", help="The first offset to keep, or 'latest' to keep nothing.")
    ],
    yes: YesOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Delete the oldest records of partitions.

    kohort topics delete-records flights:0,3-5 --before 1000
    """
    from kohort.client.types import TopicPartition

    names, chosen = parse_partitions(partitions, "TOPIC")
    if before != "latest" and not before.isdecimal():
        fail(f"--before {before}: an offset is wanted, or latest")
    what = "all records" if before == "latest" else f"the records before offset {before}"
    confirm(f"Delete {what} of {', '.join(partitions)}?", yes=yes)

    async def work(admin: Admin) -> dict[TopicPartition, int]:
        there = await existing_topics(admin, {*names, *(at.topic for at in chosen)})
        missing = [at for at in chosen if at.partition not in there[at.topic].partitions]
        if missing:  # a mistake: nothing is deleted
            fail(f"there is no partition {', '.join(map(str, missing))}", 1)
        found = [*chosen, *(TopicPartition(name, number) for name in names for number in there[name].partitions)]
        return await admin.topics.delete_records(dict.fromkeys(found, -1 if before == "latest" else int(before)))

    first = with_admin(bootstrap_server, config, timeout, work, changes=True)
    if as_json:
        rows: list[dict[str, Any]] = [
            {"topic": at.topic, "partition": at.partition, "first_offset": offset}
            for at, offset in sorted(first.items())
        ]
        print_json(rows)
        return
    from kohort.cli.client.tables import table

    shown = ((at.topic, str(at.partition), offset) for at, offset in sorted(first.items()))
    out.print(table(("Topic", ">Partition", ">First offset"), shown))


def _parse_assignment(text: str) -> dict[int, tuple[int, ...]]:
    try:
        return {
            number: tuple(int(broker) for broker in brokers.split(":"))
            for number, brokers in enumerate(text.split(","))
        }
    except ValueError:
        fail(f"--replica-assignment {text}: broker ids are wanted, those of a partition with : between: 1:2,2:3")
