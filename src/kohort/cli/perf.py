"""`kohort perf`: how fast a cluster takes and gives records, and how long that takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kohort.cli.client import completion
from kohort.cli.client.admin import existing_topics, with_admin
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, check_timeout, within
from kohort.cli.terminal import fail, out, print_json

if TYPE_CHECKING:
    from kohort.cli.data.progress import Progress
    from kohort.cli.measuring.outcome import Outcome
    from kohort.client.config import ClientConfig

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

FAILED: Final = 1


def _finite(value: float | None) -> float | None:
    """The callback of numbers with a fraction: nan and inf are such to Python, and pass any range."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number of them")
    return value


TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic; it must be there.", autocompletion=completion.topics)
]
RecordsOption = Annotated[int | None, typer.Option("--records", "-n", min=1, metavar="N", help="How many records.")]
SizeOption = Annotated[
    int, typer.Option("--size", "-s", metavar="BYTES", callback=within(0, 2**24), help="Of a record's value.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
AcksOption = Annotated[
    str | None,
    typer.Option(
        metavar="all|1|0",
        help="Replicas that must have a record.",
        show_default="all",
        autocompletion=completion.words("all", "1", "0"),
    ),
]
CompressionOption = Annotated[
    str | None,
    typer.Option(
        "--compression",
        "-z",
        metavar="CODEC",
        help="gzip, snappy, lz4 or zstd. The values are random: it costs time, and saves nothing.",
        autocompletion=completion.words("gzip", "snappy", "lz4", "zstd"),
    ),
]
LingerOption = Annotated[
    float | None, typer.Option(metavar="MS", min=0, callback=_finite, help="How long a batch waits for more.")
]
FindingOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        callback=check_timeout,
        help="To find the cluster and the topic; a measurement takes as long as it takes.",
    ),
]


@app.callback()
def perf() -> None:
    """How fast a cluster takes and gives records, and how long that takes.

    Figures are of this client, this machine and the network to the cluster, as well as of the brokers: Kohort's client
    is in Python, and may be what is slow. Records that perf writes stay in the topic: use one of its own. Ctrl-C ends
    a measurement, and what was measured until then is told.
    """


@app.command()
def produce(
    topic: TopicArgument,
    records: RecordsOption = None,
    duration: Annotated[
        float | None,
        typer.Option(min=0.001, callback=_finite, metavar="SECONDS", help="Instead of --records: for so long."),
    ] = None,
    size: SizeOption = 100,
    rate: Annotated[
        float | None, typer.Option(min=0.001, callback=_finite, metavar="N", help="Records a second, at most.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="All to this one.")
    ] = None,
    acks: AcksOption = None,
    compression: CompressionOption = None,
    batch_size: Annotated[int | None, typer.Option(metavar="BYTES", min=1, help="Of a batch of records.")] = None,
    linger: LingerOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: FindingOption = DEFAULT_TIMEOUT,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Send records of random bytes: how many a second are acknowledged, and how long that takes.

    As fast as it goes:

    kohort perf produce test --records 1000000 --size 100

    How long it takes at a rate that the cluster can stand, which is what tells of latency:

    kohort perf produce test --duration 30 --rate 5000

    A latency begins when a record is handed over, or with --rate when it was due, and ends when those that left with it
    are acknowledged. Without --rate it is mostly the time that records wait in this client's buffer.

    Exit codes: 0, also if it was stopped by Ctrl-C; 1 if records weren't delivered; 2 for a wrong call.
    """
    from kohort.cli.data.choose_path import choose_path
    from kohort.cli.measuring.producing import ProducingMeasure
    from kohort.client.producer import Producer

    if records is not None and duration is not None:
        fail("--records and --duration exclude each other")
    if records is None and duration is None:
        records = 100_000
    partitions, cluster, (arguments,) = _looked_up(topic, bootstrap_server, config, timeout, Producer)
    if partition is not None and partition not in partitions:
        fail(f"--partition {partition}: {topic} has 0 to {len(partitions) - 1}")
    arguments |= _given(acks, compression, linger)
    if batch_size is not None:
        arguments["batch_size"] = batch_size
    path = choose_path()

    async def body() -> Outcome:
        async with Producer(cluster, **arguments) as producer:
            measure = ProducingMeasure(
                producer, topic, path, records=records, seconds=duration, size=size, rate=rate, partition=partition
            )
            return await _shown(measure, measure.run(), quiet=quiet)

    _measured(body, as_json=as_json)


@app.command()
def consume(
    topic: TopicArgument,
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, metavar="N", help="At most so many; all, unless given.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: FindingOption = DEFAULT_TIMEOUT,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read a topic from its beginning to its present end: how many records a second come, and when the first ones did.

    kohort perf consume test

    It belongs to no group, and commits nothing.
    """
    from kohort.cli.data.choose_path import choose_path
    from kohort.cli.measuring.consuming import ConsumingMeasure
    from kohort.client.consumer import Consumer

    partitions, cluster, (arguments,) = _looked_up(topic, bootstrap_server, config, timeout, Consumer)
    path = choose_path()

    async def body() -> Outcome:
        async with Consumer(cluster, **arguments) as consumer:
            measure = ConsumingMeasure(consumer, topic, path, records=records)
            return await _shown(measure, measure.run(partitions), quiet=quiet)

    _measured(body, as_json=as_json)


@app.command()
def e2e(
    topic: TopicArgument,
    records: Annotated[int, typer.Option("--records", "-n", min=1, metavar="N", help="How many records.")] = 1_000,
    size: Annotated[
        int, typer.Option("--size", "-s", metavar="BYTES", callback=within(16, 2**24), help="Of a record's value.")
    ] = 100,
    rate: Annotated[float, typer.Option(min=0.001, callback=_finite, metavar="N", help="Records a second.")] = 100.0,
    acks: AcksOption = None,
    linger: Annotated[
        float, typer.Option(metavar="MS", min=0, callback=_finite, help="How long a batch waits for more.")
    ] = 0.0,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: FindingOption = DEFAULT_TIMEOUT,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Send records and read them in the same process: how long it takes from when one is due until it is read.

    kohort perf e2e test --records 1000 --rate 100

    With acks=all a record can be read when all replicas in sync have it. Records that don't come within 10 s after the
    last one was sent are lost, and the exit code is 1.
    """
    from kohort.cli.measuring.round_trips import RoundTripMeasure
    from kohort.client.consumer import Consumer
    from kohort.client.producer import Producer

    partitions, cluster, (sending, reading) = _looked_up(topic, bootstrap_server, config, timeout, Producer, Consumer)
    sending |= _given(acks, None, linger)

    async def body() -> Outcome:
        async with Producer(cluster, **sending) as producer, Consumer(cluster, **reading) as consumer:
            measure = RoundTripMeasure(producer, consumer, topic, records=records, size=size, rate=rate)
            return await _shown(measure, measure.run(partitions), quiet=quiet)

    _measured(body, as_json=as_json)


def _looked_up(
    topic: str, bootstrap_server: str | None, config: str | None, timeout: float, *clients: Callable[..., Any]
) -> tuple[list[int], ClientConfig, list[dict[str, Any]]]:
    """The partitions of a topic, the cluster, and the arguments of each client, as a file has them.

    The topic must be there: it isn't to be made by a slip of the fingers. Arguments are without those of a group or a
    transactional id, which a file may have for others.
    """
    from kohort.cli.data.client_arguments import ClientOptions

    there = with_admin(bootstrap_server, config, timeout, lambda admin: existing_topics(admin, [topic]))
    options = ClientOptions(bootstrap_server=bootstrap_server, config=config, timeout=timeout)
    own = ("group_", "transactional_id")
    arguments = []
    for client in clients:
        cluster, settings = options.arguments(client)
        settings.pop("allow_auto_create_topics", None)  # to Kafka a consumer's, which has no use for it here
        arguments.append({name: value for name, value in settings.items() if not name.startswith(own)})
    return sorted(there[topic].partitions), cluster, arguments


def _given(acks: str | None, compression: str | None, linger: float | None) -> dict[str, Any]:
    given = {"acks": acks, "compression_type": compression, "linger_ms": linger}
    arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if acks not in (None, "all", "-1"):
        arguments["enable_idempotence"] = False
    return arguments


async def _shown(measure: Any, work: Coroutine[Any, Any, None], *, quiet: bool) -> Outcome:
    progress: Progress = measure.progress
    with progress.shown(not quiet):
        await work
    outcome: Outcome = measure.outcome
    return outcome


def _measured(body: Callable[[], Coroutine[Any, Any, Outcome]], *, as_json: bool) -> None:
    import uvloop

    from kohort.cli.client.run import run

    outcome = run(body, loop_factory=uvloop.new_event_loop)
    if as_json:
        print_json(outcome.as_json())
    else:
        out.print(outcome.as_table())
    if outcome.problem is not None:
        fail(outcome.problem, FAILED)
    if outcome.lost:
        raise typer.Exit(FAILED)
