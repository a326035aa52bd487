"""`kohort produce`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.client.options import BootstrapOption, ConfigOption, check_timeout, client_settings
from kohort.cli.terminal import err, fail
from kohort.extras import ARROW, require

if TYPE_CHECKING:
    import pyarrow as pa

    from kohort.cli.data.file_producer import FileProducer
    from kohort.cli.data.source import Source

FORMATS: Final = ("lines", "json", "csv", "parquet", "records")
FAILED: Final = 1


def command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where the records go.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|-…", help="What to read; standard input unless given.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    format: Annotated[  # noqa: A002 (the option's name)
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    ] = "lines",
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="Of lines: what stands before it is the key."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Of JSON, CSV and Parquet: the field whose value is the key.")
    ] = None,
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="Between the fields of CSV.")] = ",",
    typed: Annotated[
        bool, typer.Option("--typed", help="Of CSV: write columns of numbers and of flags as such, not as strings.")
    ] = False,
    null: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Keys and values that are this text are sent as null.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="Of each record. Repeatable.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send all records there.", show_default="by key")
    ] = None,
    compression: Annotated[
        str | None, typer.Option("--compression", "-z", metavar="CODEC", help="gzip, snappy, lz4 or zstd.")
    ] = None,
    acks: Annotated[
        str | None, typer.Option(metavar="all|1|0", help="Replicas that must have a record.", show_default="all")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="BYTES", min=1, help="Of a batch of records.")] = None,
    linger: Annotated[
        float | None, typer.Option(metavar="MS", min=0, help="How long a batch waits for more records.")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", min=0.001, help="Records a second, at most.")] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", callback=check_timeout, help="To find the brokers.")
    ] = 15.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")] = False,
) -> None:
    r"""Send records from files, or standard input.

    A record a line, with exactly its bytes; typed lines are sent one by one:

    kohort produce words < words.txt

    With keys, "key:value":

    kohort produce words --key-separator : < pairs.txt

    JSON, a document a line, with one of its fields as the key:

    kohort produce flights --format json --key carrier flights.jsonl

    CSV and Parquet, each row as a JSON object by the names of the columns:

    kohort produce flights --format csv --key carrier flights.csv

    Records that `kohort consume --format json` wrote, with keys, headers and times; --format parquet reads those of
    `kohort consume --format parquet`:

    kohort produce copy --format records saved.jsonl

    If the input is broken somewhere, the records before that are sent and counted.

    Exit codes:

    0: all records were delivered.

    1: not all were: the input is broken, or the cluster didn't take them.

    2: the call is wrong.

    130, 143: it was interrupted; the summary says how many records were delivered.
    """
    import uvloop

    from kohort.cli.client.run import run
    from kohort.cli.data.no_pandas import without_pandas

    require("arrow", "kohort produce", ARROW)
    without_pandas()
    from kohort.cli.data.client_arguments import arguments_of
    from kohort.cli.data.file_producer import FileProducer
    from kohort.client.errors import ConfigError
    from kohort.client.producer import Producer

    read = _reader(format, key_separator, key, delimiter, typed)
    headers = _headers(header or [])
    if headers and format == "records":
        fail("--header: the records have headers of their own")
    settings, properties = client_settings(bootstrap_server, config, timeout)
    try:
        arguments = arguments_of(Producer, properties, str(config))
    except ConfigError as error:
        fail(str(error))
    given = {"acks": acks, "batch_size": batch_size, "linger_ms": linger, "compression_type": compression}
    arguments |= {name: value for name, value in given.items() if value is not None}
    if acks not in (None, "all", "-1"):
        arguments["enable_idempotence"] = False
    marker = None if null is None else null.encode(errors="surrogateescape")

    async def body() -> None:
        async with Producer(settings, **arguments) as producer:
            sending = FileProducer(producer, topic, read, partition=partition, headers=headers, null=marker, rate=rate)
            await _produce(sending, files or ["-"], quiet)

    run(body, loop_factory=uvloop.new_event_loop)


async def _produce(sending: FileProducer, files: list[str], quiet: bool) -> None:
    import asyncio

    from kohort.cli.client.errors import explain
    from kohort.cli.data.errors import DataError
    from kohort.cli.data.pipes import Interrupter
    from kohort.client.errors import ClientError
    from kohort.protocol.errors import KafkaError

    problem, interrupted = None, False
    with Interrupter() as interrupter, sending.progress.shown(not quiet):
        try:
            await sending.send_files(files, interrupter)
        except asyncio.CancelledError:
            interrupted = True
        except (DataError, ValueError) as error:  # the producer refuses a partition, or a record's size
            problem = str(error)
        except (ClientError, KafkaError) as error:
            problem = explain(error)
        try:
            await sending.flush()
        except ClientError as error:
            problem = problem or explain(error)
    if problem is not None:
        fail(f"{problem} ({sending.delivered:,} records were sent, and stay sent)", FAILED)
    if not quiet:
        err.print(sending.progress.summary("sent"), soft_wrap=True)
    if interrupted and not sending.interactive:
        raise asyncio.CancelledError


def _reader(
    form: str, key_separator: str | None, key: str | None, delimiter: str, typed: bool
) -> Callable[[Source], Iterator[pa.RecordBatch]]:
    if form not in FORMATS:
        fail(f"--format {form}: one of {', '.join(FORMATS)} is wanted")
    if key_separator is not None and (form != "lines" or not key_separator):
        fail("--key-separator: some text, and for lines; the other formats have --key FIELD")
    if key is not None and form in ("lines", "records"):
        fail(f"--key: {form} have no fields" + ("; --key-separator TEXT splits them" if form == "lines" else ""))
    if (typed or delimiter != ",") and form != "csv":
        fail("--typed and --delimiter are for --format csv")
    match form:
        case "lines":
            from kohort.cli.data.read_lines import read_lines

            separator = None if key_separator is None else key_separator.encode(errors="surrogateescape")
            return lambda source: read_lines(source, separator)
        case "json":
            from kohort.cli.data.read_json import read_json

            return lambda source: read_json(source, key)
        case "records":
            from kohort.cli.data.read_json import read_json_records

            return read_json_records
        case "csv":
            from kohort.cli.data.read_csv import read_csv

            if len(delimiter) != 1 or not delimiter.isascii():
                fail(f"--delimiter {delimiter!r}: one ASCII character is wanted")
            return lambda source: read_csv(source, key, delimiter=delimiter, typed=typed)
        case _:
            from kohort.cli.data.read_parquet import read_parquet

            return lambda source: read_parquet(source, key)


def _headers(texts: list[str]) -> list[tuple[str, bytes]]:
    headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            fail(f"--header {text}: NAME=VALUE is wanted")
        headers.append((name, value.encode(errors="surrogateescape")))
    return headers
