"""`kohort produce`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.client import completion
from kohort.cli.client.options import BootstrapOption, ConfigOption, check_timeout
from kohort.cli.terminal import err, fail, printable

if TYPE_CHECKING:
    from kohort.cli.data.file_producer import FileProducer

FAILED: Final = 1


def command(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Where the records go.", autocompletion=completion.topics)
    ],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|-…", help="What to read; standard input unless given.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    format: Annotated[  # noqa: A002 (the option's name)
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="lines, json, csv, parquet or records.",
            autocompletion=completion.words("lines", "json", "csv", "parquet", "records"),
        ),
    ] = "lines",
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="Of lines: what stands before it is the key."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Of JSON, CSV and Parquet: the field whose value is the key.")
    ] = None,
    null_keys: Annotated[
        bool,
        typer.Option(
            "--null-keys", help="Send records whose key field is missing or null, or empty in CSV, without a key."
        ),
    ] = False,
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
        int | None,
        typer.Option("--partition", "-p", min=0, metavar="N", help="Send all records there.", show_default="by key"),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            "--compression",
            "-z",
            metavar="CODEC",
            help="gzip, snappy, lz4 or zstd.",
            autocompletion=completion.words("gzip", "snappy", "lz4", "zstd"),
        ),
    ] = None,
    acks: Annotated[
        str | None,
        typer.Option(
            metavar="all|1|0",
            help="Replicas that must have a record.",
            show_default="all",
            autocompletion=completion.words("all", "1", "0"),
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="BYTES", min=1, help="Of a batch of records.")] = None,
    linger: Annotated[
        float | None, typer.Option(metavar="MS", min=0, help="How long a batch waits for more records.")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", min=0.001, help="Records a second, at most.")] = None,
    no_create: Annotated[
        bool, typer.Option("--no-create", help="Fail if there is no such topic, instead of having it made.")
    ] = False,
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

    JSON, a document a line, with one of its fields as the key, which each must have, unless --null-keys is given:

    kohort produce flights --format json --key carrier flights.jsonl

    CSV and Parquet, each row as a JSON object by the names of the columns:

    kohort produce flights --format csv --key carrier flights.csv

    Records that `kohort consume --format json` wrote, with keys, headers and times; --format parquet reads those of
    `kohort consume --format parquet`:

    kohort produce copy --format records saved.jsonl

    If the input is broken somewhere, the records before that are sent and counted.

    A topic that isn't there is made by the brokers, if their auto.create.topics.enable says so; standard error tells of
    it, unless --quiet is given.

    Exit codes:

    0: all records were delivered.

    1: not all were: the input is broken, or the cluster didn't take them.

    2: the call is wrong.

    130, 143: it was interrupted; the summary says how many records were delivered.
    """
    import uvloop

    from kohort.cli.client.errors import not_found
    from kohort.cli.client.run import run
    from kohort.cli.data.choose_path import choose_path
    from kohort.cli.data.client_arguments import ClientOptions
    from kohort.cli.data.file_producer import FileProducer
    from kohort.cli.data.input_options import InputOptions
    from kohort.cli.data.new_topic import others_if_missing, said_of_new
    from kohort.client.admin import Admin
    from kohort.client.producer import Producer
    from kohort.similar_names import did_you_mean

    options = InputOptions(
        format=format, key_separator=key_separator, key=key, delimiter=delimiter, typed=typed, null_keys=null_keys
    )
    read = options.reader(choose_path())
    headers = _headers(header or [])
    if headers and format == "records":
        fail("--header: the records have headers of their own")
    client = ClientOptions(bootstrap_server=bootstrap_server, config=config, timeout=timeout)
    cluster, arguments = client.arguments(Producer)
    arguments.pop("allow_auto_create_topics", None)  # to Kafka a consumer's property, which its producers don't know
    given = {"acks": acks, "batch_size": batch_size, "linger_ms": linger, "compression_type": compression}
    arguments |= {name: value for name, value in given.items() if value is not None}
    if acks not in (None, "all", "-1"):
        arguments["enable_idempotence"] = False
    if no_create:
        arguments["allow_auto_create_topics"] = False  # also where the look-up fails, or the topic goes after it
        arguments.setdefault("max_block_ms", max(1, int(timeout * 1000)))
    marker = None if null is None else null.encode(errors="surrogateescape")

    def administering() -> Admin:
        return Admin(cluster, default_api_timeout_ms=max(1, int(timeout * 1000)))

    async def body() -> None:
        async with Producer(cluster, **arguments) as producer:
            others = None
            if no_create or not quiet:
                others = await others_if_missing(administering, topic)
            if no_create and others is not None:
                fail(not_found("topic", topic, others), FAILED)

            async def tell() -> None:
                if others is not None:
                    err.print(printable(await said_of_new(administering, topic, others)), markup=False, soft_wrap=True)

            sending = FileProducer(
                producer, topic, read, partition=partition, headers=headers, null=marker, rate=rate, begun=tell
            )
            await _produce(sending, files or ["-"], quiet, did_you_mean(topic, others or ()))

    run(body, loop_factory=uvloop.new_event_loop)


async def _produce(sending: FileProducer, files: list[str], quiet: bool, meant: str) -> None:
    import asyncio

    from kohort.cli.client.errors import explain
    from kohort.cli.data.errors import DataError
    from kohort.cli.data.pipes import Interrupter
    from kohort.client.errors import ClientError
    from kohort.protocol.errors import ErrorCode, KafkaError

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
            if meant and isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                problem += f"; {meant}"
        try:
            await sending.flush()
        except ClientError as error:
            problem = problem or explain(error)
    if problem is not None:
        fail(f"{problem} ({_sent(sending.delivered)})", FAILED)
    if not quiet:
        err.print(sending.progress.summary("sent"), soft_wrap=True)
    if interrupted and not sending.interactive:
        raise asyncio.CancelledError


def _sent(count: int) -> str:
    return "1 record was sent, and stays sent" if count == 1 else f"{count:,} records were sent, and stay sent"


def _headers(texts: list[str]) -> list[tuple[str, bytes]]:
    headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            fail(f"--header {text}: NAME=VALUE is wanted")
        headers.append((name, value.encode(errors="surrogateescape")))
    return headers
