"""`kohort consume`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kohort.cli.client import completion
from kohort.cli.client.options import BootstrapOption, ConfigOption, check_timeout
from kohort.cli.terminal import err, fail

if TYPE_CHECKING:
    from kohort.cli.data.client_arguments import ClientOptions
    from kohort.cli.data.consume_loop import ConsumeLoop
    from kohort.cli.data.membership_options import MembershipOptions
    from kohort.cli.data.output_options import OutputOptions
    from kohort.cli.data.selection_options import SelectionOptions
    from kohort.cli.data.share_loop import ShareLoop
    from kohort.cli.data.share_options import ShareOptions

FAILED: Final = 1


def command(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC…", help="What to read.", autocompletion=completion.topics)
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Instead of TOPIC: all topics whose whole name matches.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="NAME",
            help="Be a member of this group, and commit.",
            autocompletion=completion.groups,
        ),
    ] = None,
    share_group: Annotated[
        str | None,
        typer.Option(
            "--share-group",
            metavar="NAME",
            help="Be a member of this share group: read as from a queue.",
            autocompletion=completion.share_groups,
        ),
    ] = None,
    acknowledge: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            help="To a share group, of what is written: accept, release or reject.",
            autocompletion=completion.words("accept", "release", "reject"),
        ),
    ] = "accept",
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the first record, where the group has no offset yet.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            "-o",
            metavar="WHERE",
            help="earliest, latest, an offset, or -N for the last N records of each partition.",
            show_default="latest",
        ),
    ] = None,
    start_time: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Start at the first record that isn't older.")
    ] = None,
    end_time: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Stop at the first that isn't older, or at the end.")
    ] = None,
    stop: Annotated[
        bool, typer.Option("--exit", "-e", help="Stop at the end that the log has when the command starts.")
    ] = False,
    max_messages: Annotated[
        int | None, typer.Option("--max-messages", "-n", min=1, metavar="N", help="Stop after so many records.")
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Only this one. Repeatable.")
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="text, json or parquet.",
            autocompletion=completion.words("text", "json", "parquet"),
        ),
    ] = "text",
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where to write, instead of standard output.")
    ] = None,
    key: Annotated[bool, typer.Option("--key", "-k", help="Of text: print keys before values.")] = False,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", metavar="TEXT", help="Print keys, and this after them.")
    ] = None,
    timestamp: Annotated[bool, typer.Option("--timestamp", "-t", help="Of text: print times (UTC) first.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Of text: print headers before keys.")] = False,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help=r"Of text: '%t %p %o %k %v %T %h' (also %D, %K, %S, %%), \n, \t; a newline is added."
        ),
    ] = None,
    null: Annotated[str, typer.Option(metavar="TEXT", help="Of text: what to print for null.")] = "null",
    isolation: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="read_uncommitted or read_committed (transactions).",
            autocompletion=completion.words("read_uncommitted", "read_committed"),
        ),
    ] = "read_uncommitted",
    group_protocol: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="classic, or consumer (KIP-848).",
            autocompletion=completion.words("classic", "consumer"),
        ),
    ] = "classic",
    no_commit: Annotated[bool, typer.Option("--no-commit", help="Leave the group's offsets alone.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", callback=check_timeout, help="To find the brokers and the topics.")
    ] = 15.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    r"""Read records, and print their values, a line each, as they come.

    All of a topic, up to now, with a group's offsets committed:

    kohort consume words --from-beginning --exit --group readers

    The last ten of each partition with their keys, then new ones:

    kohort consume words --offset -10 --key

    An hour of yesterday, into a file that pandas, Spark and DuckDB read:

    kohort consume flights --from 26h --to 25h --format parquet --output hour.parquet

    With a template for each record:

    kohort consume flights --template '%p:%o %D %k %v'

    As from a queue, with other members of a share group:

    kohort consume orders --share-group billing

    JSON lines have topic, partition, offset, timestamp (ms), key, value and headers. Keys and values are strings; bytes
    that aren't UTF-8 are in base64, with "value_encoding": "base64". Text has the bytes as they are.

    Offsets are committed every 5 s and at the end, never before the records are written; those of a Parquet file once
    it is complete. Without --group all partitions are read, and nothing is committed. The members of a group share the
    partitions: with --exit, a member stops when it has read those that it has to their ends.

    A share group hands out records by itself: where it begins is its config share.auto.offset.reset. A record is
    acknowledged when it is written; those that aren't go to other members at once. --exit stops when nothing has come
    for 2 s.

    Ctrl-C and SIGTERM commit what was written, and exit with 0. Exit codes: 1 for a failed read or write, 2 for a
    wrong call.
    """
    from kohort.cli.data.client_arguments import ClientOptions
    from kohort.cli.data.membership_options import MembershipOptions
    from kohort.cli.data.output_options import OutputOptions
    from kohort.cli.data.selection_options import SelectionOptions
    from kohort.cli.data.share_options import ShareOptions

    client = ClientOptions(bootstrap_server=bootstrap_server, config=config, timeout=timeout)
    writes = OutputOptions(
        format=format,
        file=output,
        key=key,
        key_separator=key_separator,
        timestamp=timestamp,
        headers=headers,
        template=template,
        null=null,
        quiet=quiet,
    )
    if share_group is not None:
        excluded = {
            "--group": group,
            "--pattern": pattern,
            "--from-beginning": from_beginning,
            "--offset": offset,
            "--from": start_time,
            "--to": end_time,
            "--partition": partition,
            "--no-commit": no_commit,
            "--isolation": isolation != "read_uncommitted",
            "--group-protocol": group_protocol != "classic",
            "--format parquet": format == "parquet",
        }
        share = ShareOptions(group=share_group, acknowledge=acknowledge)
        given = share.arguments(excluded)
        if not topics:
            fail("topics are wanted")
        _share(client, share, given, tuple(dict.fromkeys(topics)), writes, stop=stop, most=max_messages)
        return
    _consume(
        client,
        MembershipOptions(group=group, group_protocol=group_protocol, isolation=isolation, no_commit=no_commit),
        SelectionOptions(
            topics=topics,
            pattern=pattern,
            partitions=partition,
            from_beginning=from_beginning,
            offset=offset,
            start_time=start_time,
            end_time=end_time,
            stop=stop,
            max_messages=max_messages,
        ),
        writes,
    )


def _consume(
    client: ClientOptions, membership: MembershipOptions, wanted: SelectionOptions, output: OutputOptions
) -> None:
    """Checks the options together, and reads until the end of the selection or a signal."""
    import uvloop

    from kohort.cli.client.run import run
    from kohort.cli.data.choose_path import choose_path
    from kohort.cli.data.consume_loop import ConsumeLoop
    from kohort.cli.data.pipes import Interrupter
    from kohort.client.consumer import Consumer

    selection = wanted.selection()
    given = membership.arguments(selection)
    path = choose_path()
    render = output.render(path)
    cluster, arguments = client.arguments(Consumer)
    arguments |= given | {"default_api_timeout_ms": max(1, int(client.timeout * 1000))}

    async def body() -> None:
        with Interrupter() as interrupter, output.opened(render, interrupter) as writer:
            async with Consumer(cluster, **arguments) as consumer:
                in_group = membership.group is not None
                reading = ConsumeLoop(
                    consumer, path, writer, selection, interrupter, group=in_group, commit=membership.commits
                )
                await _read(reading, reading.run(), output.shows_progress)
                if not output.quiet:
                    err.print(reading.progress.summary("read"), soft_wrap=True)

    run(body, loop_factory=uvloop.new_event_loop)


def _share(
    client: ClientOptions,
    share: ShareOptions,
    given: dict[str, Any],
    topics: tuple[str, ...],
    output: OutputOptions,
    *,
    stop: bool,
    most: int | None,
) -> None:
    """Reads as a member of a share group, until the end or a signal."""
    import uvloop

    from kohort.cli.client.run import run
    from kohort.cli.data.choose_path import choose_path
    from kohort.cli.data.pipes import Interrupter
    from kohort.cli.data.share_loop import ShareLoop
    from kohort.client.share_consumer import ShareConsumer

    path = choose_path()
    render = output.render(path)
    cluster, arguments = client.arguments(ShareConsumer)
    arguments |= given | {"default_api_timeout_ms": max(1, int(client.timeout * 1000))}

    async def body() -> None:
        with Interrupter() as interrupter, output.opened(render, interrupter) as writer:
            async with ShareConsumer(cluster, **arguments) as consumer:
                reading = ShareLoop(consumer, path, writer, interrupter, share.type, bounded=stop, most=most)
                await _read(reading, reading.run(topics), output.shows_progress)
                if not output.quiet:
                    err.print(reading.progress.summary("read"), soft_wrap=True)

    run(body, loop_factory=uvloop.new_event_loop)


async def _read(reading: ConsumeLoop | ShareLoop, work: Coroutine[Any, Any, None], progress: bool) -> None:
    import asyncio

    with reading.progress.shown(progress):
        try:
            await work
        except asyncio.CancelledError:
            pass
        except BrokenPipeError:
            await reading.finish()
            raise
        except ValueError as error:
            fail(str(error), FAILED)
        await reading.finish()
