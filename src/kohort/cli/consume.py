"""`kohort consume`."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import typer

from kohort.cli.client.options import BootstrapOption, ConfigOption, check_timeout, client_settings
from kohort.cli.terminal import err, fail, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kohort.cli.data.consume_loop import ConsumeLoop
    from kohort.cli.data.pipes import Interrupter
    from kohort.cli.data.writers import Writer

FORMATS: Final = ("text", "json", "parquet")
ISOLATION: Final = ("read_uncommitted", "read_committed")
PROTOCOLS: Final = ("classic", "consumer")
FAILED: Final = 1


def command(
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC…", help="What to read.")] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Instead of TOPIC: all topics whose whole name matches.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    group: Annotated[
        str | None, typer.Option("--group", "-g", metavar="NAME", help="Be a member of this group, and commit.")
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the first record, where the group has no offset yet.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            "-o",
            metavar="WHERE",
            help="earliest, latest, an offset, or -N for the last N of a partition.",
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
    max_messages: Annotated[int | None, typer.Option("--max-messages", "-n", min=1, help="Stop after so many.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this one. Repeatable.")
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        str, typer.Option("--format", "-f", metavar="FORMAT", help="text, json or parquet.")
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
        str, typer.Option(metavar="LEVEL", help="read_uncommitted or read_committed (transactions).")
    ] = "read_uncommitted",
    group_protocol: Annotated[str, typer.Option(metavar="NAME", help="classic, or consumer (KIP-848).")] = "classic",
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

    JSON lines have topic, partition, offset, timestamp (ms), key, value and headers. Keys and values are strings; bytes
    that aren't UTF-8 are in base64, with "value_encoding": "base64". Text has the bytes as they are.

    Offsets are committed every 5 s and at the end, never before the records are written; those of a Parquet file once
    it is complete. Without --group all partitions are read, and nothing is committed. The members of a group share the
    partitions: with --exit, a member stops when it has read those that it has to their ends.

    Ctrl-C and SIGTERM commit what was written, and exit with 0. Exit codes: 1 for a failed read or write, 2 for a
    wrong call.
    """
    import uvloop

    from kohort.cli.client.run import run
    from kohort.cli.data.no_pandas import without_pandas

    without_pandas()
    from kohort.cli.data.client_arguments import arguments_of
    from kohort.cli.data.consume_loop import ConsumeLoop
    from kohort.cli.data.pipes import Interrupter
    from kohort.cli.data.selection import Selection
    from kohort.client.consumer import Consumer
    from kohort.client.errors import ConfigError

    starts = {"--from-beginning": from_beginning, "--offset": offset is not None, "--from": start_time is not None}
    if sum(starts.values()) > 1:
        fail(f"{' and '.join(name for name, given in starts.items() if given)} exclude each other: one start is wanted")
    if bool(topics) == (pattern is not None):
        fail("topics are wanted, or --pattern REGEX")
    if isolation not in ISOLATION:
        fail(f"--isolation {isolation}: one of {', '.join(ISOLATION)} is wanted")
    if group_protocol not in PROTOCOLS:
        fail(f"--group-protocol {group_protocol}: one of {', '.join(PROTOCOLS)} is wanted")
    selection = Selection(
        topics=tuple(dict.fromkeys(topics or ())),
        pattern=_regex(pattern),
        partitions=tuple(sorted(set(partition))) if partition else None,
        start="earliest" if from_beginning else _offset(offset),
        start_time=_time("--from", start_time),
        end_time=_time("--to", end_time),
        bounded=stop,
        most=max_messages,
    )
    if group is not None and (partition or start_time or end_time or isinstance(selection.start, int)):
        fail("--group excludes --partition, --from, --to and a number as --offset: they are up to the group")
    text = _TextOptions(key, key_separator, timestamp, headers, template, null)
    render = _render(format, output, text)
    settings, properties = client_settings(bootstrap_server, config, timeout)
    try:
        arguments = arguments_of(Consumer, properties, str(config))
    except ConfigError as error:
        fail(str(error))
    arguments |= {
        "group_id": group,
        "group_protocol": group_protocol,
        "isolation_level": isolation,
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
        "default_api_timeout_ms": max(1, int(timeout * 1000)),
        "auto_offset_reset": "none" if isinstance(selection.start, int) else selection.start,
    }

    async def body() -> None:
        with Interrupter() as interrupter, _writer(output, render, interrupter) as writer:
            async with Consumer(settings, **arguments) as consumer:
                commit = group is not None and not no_commit
                reading = ConsumeLoop(consumer, writer, selection, interrupter, group=group is not None, commit=commit)
                await _consume(reading, quiet or (output is None and sys.stdout.isatty()))
                if not quiet:
                    err.print(reading.progress.summary("read"), soft_wrap=True)

    run(body, loop_factory=uvloop.new_event_loop)


async def _consume(reading: ConsumeLoop, quiet: bool) -> None:
    import asyncio

    with reading.progress.shown(not quiet):
        try:
            await reading.run()
        except asyncio.CancelledError:
            pass
        except BrokenPipeError:
            await reading.finish()
            raise
        except ValueError as error:
            fail(str(error), FAILED)
        await reading.finish()


class _TextOptions(NamedTuple):
    key: bool
    key_separator: str | None
    timestamp: bool
    headers: bool
    template: str | None
    null: str

    def as_template(self) -> str:
        if self.template is not None:
            if self.key or self.key_separator is not None or self.timestamp or self.headers:
                fail("--template excludes --key, --key-separator, --timestamp and --headers")
            return self.template
        separator = (self.key_separator or "\t").replace("\\", "\\\\").replace("%", "%%")
        before = (("%D", "\t", self.timestamp), ("%h", "\t", self.headers))
        shown = "".join(field + between for field, between, wanted in before if wanted)
        return shown + (f"%k{separator}" if self.key or self.key_separator is not None else "") + "%v"


def _render(form: str, output: str | None, options: _TextOptions) -> Callable[[pa.RecordBatch], memoryview] | None:
    """The function that renders records as bytes; None for a Parquet file."""
    if form not in FORMATS:
        fail(f"--format {form}: one of {', '.join(FORMATS)} is wanted")
    if form != "text" and options != _TextOptions(False, None, False, False, None, options.null):
        fail(f"--format {form} has all fields: --key, --timestamp, --headers and --template are for text")
    if form == "parquet" and output is None:
        fail("--format parquet needs --output FILE")
    if form == "parquet":
        return None
    if form == "json":
        from kohort.cli.data.render_json import render_json

        return render_json
    from kohort.cli.data.render_template import parse_template

    try:
        return parse_template(options.as_template(), options.null.encode(errors="surrogateescape"))
    except ValueError as error:
        fail(f"--template: {error}")


@contextmanager
def _writer(
    output: str | None, render: Callable[[pa.RecordBatch], memoryview] | None, interrupter: Interrupter
) -> Iterator[Writer]:
    from kohort.cli.data.writers import LineWriter, ParquetWriter

    if output is None:
        assert render is not None
        sys.stdout.flush()
        yield LineWriter(sys.stdout.fileno(), render, interrupter)
        return
    try:
        file = Path(output).open("wb", buffering=0)  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        fail(f"--output: can't write {printable(output)}: {getattr(error, 'strerror', None) or error}", FAILED)
    with file:
        writer = ParquetWriter(file) if render is None else LineWriter(file.fileno(), render, interrupter)
        with closing(writer):
            yield writer


def _regex(pattern: str | None) -> str | None:
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            fail(f"--pattern {pattern}: {error}")
    return pattern


def _offset(text: str | None) -> int | Literal["earliest", "latest"]:
    if text is None or text == "latest":
        return "latest"
    if text == "earliest":
        return "earliest"
    if not re.fullmatch(r"-[1-9]\d{0,17}|\d{1,18}", text):
        fail(f"--offset {text}: earliest, latest, an offset, or -N for the last N is wanted")
    return int(text)


def _time(option: str, text: str | None) -> int | None:
    from kohort.cli.client.times import parse_time

    try:
        return None if text is None else parse_time(text, int(time.time() * 1000))
    except ValueError as error:
        fail(f"{option}: {error}")
