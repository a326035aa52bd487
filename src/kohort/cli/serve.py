"""`kohort serve`: its options in typer; `kohort.cli.run_server` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from kohort.cli.run_server import DEFAULT_LISTEN, ServeOptions, serve


def command(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            show_default=DEFAULT_LISTEN,
            help="Where to accept connections. Port 0 takes a free one; an empty host is every address.",
        ),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where to keep topics and groups; created if it doesn't exist.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Settings by Kafka's keys: a server.properties.")
    ] = None,
    set: Annotated[  # noqa: A002 (the option's name)
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="One setting. Repeatable.")
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST[:PORT]", help="The address for clients, if they can't reach the one listened on."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve Prometheus at /metrics, and /healthz.")
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep data in a temporary directory, and remove it at the end.")
    ] = False,
    durable: Annotated[
        bool, typer.Option("--durable", help="Sync to the disk before anything is acknowledged.")
    ] = False,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(metavar="FORMAT", help="text (key=value pairs) or json.")] = "text",
) -> None:
    """Run a broker that Kafka clients connect to.

    It prints one line, `kohort ready on HOST:PORT`, when it accepts connections; logs go to standard error.
    SIGTERM and Ctrl-C stop it cleanly; a second one, at once.

    A broker to try things with, whose data is removed at the end:

    kohort serve --ephemeral

    One that stays, for clients on other machines:

    kohort serve --listen :9092 --advertise kafka.example --data-dir /var/lib/kohort

    Settings have Kafka's keys: --set log.retention.hours=24, or KOHORT_LOG_RETENTION_HOURS=24 in the environment,
    or in a file. The command line overrides the environment, which overrides the file.
    """
    serve(
        ServeOptions(
            listen=listen,
            data_dir=data_dir,
            config=config,
            set=tuple(set or ()),
            advertise=advertise,
            metrics=metrics,
            ephemeral=ephemeral,
            durable=durable,
            log_level=log_level,
            log_format=log_format,
        )
    )
