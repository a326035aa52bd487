"""`kohort logdirs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kohort.cli.client import completion
from kohort.cli.client.admin import existing_topics, with_admin
from kohort.cli.client.errors import explain
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import complain, err, fail, out, print_json

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.cluster_info import LogDir

_Directories = Mapping[int, tuple["LogDir", ...]]


class Usage(NamedTuple):
    """What a topic, or one of its partitions, takes in a directory of a broker.

    Attributes:
        broker: its node id.
        directory: its path there.
        topic: its name.
        partition: its number; None for all of the topic's that are there.
        size: bytes.
        lag: records that its replicas there have yet to get: all together.
        partitions: how many they are.
        future: whether a partition is being moved there from another directory of the broker.
    """

    broker: int
    directory: str
    topic: str
    partition: int | None
    size: int
    lag: int
    partitions: int
    future: bool


def command(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC…", help="Only these topics.", autocompletion=completion.topics),
    ] = None,
    broker: Annotated[
        list[int] | None, typer.Option("--broker", min=0, metavar="ID", help="Only of this broker. Repeatable.")
    ] = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="A line for each partition, instead of each topic.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the N largest.")] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show what takes the room on brokers' disks: directories, and in them topics or partitions, the largest first.

    kohort logdirs --limit 10

    kohort logdirs flights --partitions

    Sizes are those of the logs' segments, on each broker that has a replica. A lag is how far a replica is behind; one
    that is moved to another directory of its broker is there as (moving) until it has caught up.

    With --json there are all directories, each with all its partitions, whatever --partitions and --limit say.
    """

    async def read(admin: Admin) -> _Directories:
        if topics:
            await existing_topics(admin, topics)
        there = {each.node_id for each in (await admin.cluster.describe()).brokers}
        if missing := sorted(set(broker or ()) - there):
            fail(f"there is no broker {missing[0]}; there are {', '.join(map(str, sorted(there)))}", 1)
        return await admin.cluster.log_dirs(broker or None)

    found = with_admin(bootstrap_server, config, timeout, read)
    wanted = set(topics) if topics else None
    if as_json:
        print_json(as_json_document(found, wanted))
    else:
        _show(found, wanted, by_partition=partitions, limit=limit)
    broken = [(node, each) for node, dirs in found.items() for each in dirs if each.error is not None]
    for node, each in broken:
        assert each.error is not None
        complain(f"{each.path} of broker {node} can't be read: {explain(each.error)}")
    if broken:
        raise typer.Exit(1)


def usage(found: _Directories, topics: set[str] | None, *, by_partition: bool) -> list[Usage]:
    """What topics or partitions take, the largest first.

    Args:
        topics: only these; None for all.
        by_partition: whether each partition is told by itself.
    """
    rows: dict[tuple[object, ...], Usage] = {}
    for node, directories in found.items():
        for directory in directories:
            for at, replica in directory.replicas.items():
                if topics is not None and at.topic not in topics:
                    continue
                number = at.partition if by_partition else None
                key = node, directory.path, at.topic, number, replica.future
                before = rows.get(key)
                rows[key] = Usage(
                    node, directory.path, at.topic, number,
                    replica.size + (before.size if before else 0),
                    replica.lag + (before.lag if before else 0),
                    1 + (before.partitions if before else 0),
                    replica.future,
                )  # fmt: skip
    return sorted(rows.values(), key=lambda each: (-each.size, each.topic, each.partition or 0, each.broker))


def as_json_document(found: _Directories, topics: set[str] | None) -> list[dict[str, Any]]:
    """The directories, with the partitions that are wanted."""
    return [
        {
            "node_id": node,
            "broker": node,  # what it was called first
            "directory": each.path,
            "error": None if each.error is None else each.error.code.name,
            "total_bytes": each.total,
            "usable_bytes": each.usable,
            "partitions": [
                {
                    "topic": at.topic, "partition": at.partition, "size_bytes": replica.size,
                    "offset_lag": replica.lag, "future": replica.future,
                }
                for at, replica in sorted(each.replicas.items())
                if topics is None or at.topic in topics
            ],
        }
        for node, directories in sorted(found.items())
        for each in directories
    ]  # fmt: skip


def _show(found: _Directories, topics: set[str] | None, *, by_partition: bool, limit: int | None) -> None:
    from kohort.cli.client.tables import table
    from kohort.cli.data.progress import in_words

    def words(size: int | None) -> str | None:
        return None if size is None else in_words(size)

    directories = [
        (
            str(node),
            each.path,
            words(sum(replica.size for replica in each.replicas.values())),
            len(each.replicas),
            words(each.usable),
            words(each.total),
        )
        for node, several in sorted(found.items())
        for each in several
        if each.error is None
    ]
    out.print(table((">Broker", "Directory", ">Logs", ">Partitions", ">Free", ">Of"), directories))
    rows = usage(found, topics, by_partition=by_partition)
    many = len({(each.broker, each.directory) for each in rows}) > 1
    shown = [
        (
            each.topic,
            str(each.partition) if by_partition else each.partitions,
            words(each.size),
            each.lag,
            *((str(each.broker), each.directory) if many else ()),
            "(moving)" if each.future else "",
        )
        for each in rows[:limit]
    ]
    if not shown:
        err.print("no topics are there")
        return
    columns = ("Topic", ">Partition" if by_partition else ">Partitions", ">Size", ">Lag")
    out.print(table((*columns, *((">Broker", "Directory") if many else ()), ""), shown))
    if limit is not None and len(rows) > limit:
        err.print(f"and {len(rows) - limit:,} more; without --limit they are shown")
