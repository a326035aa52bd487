"""`kohort serve`: its options in typer; `kohort.cli.run_server` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from kohort.cli.run_server import DEFAULT_LISTEN, ServeOptions, serve


def command(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME://]HOST:PORT",
            show_default=DEFAULT_LISTEN,
            help="Where to accept connections. Port 0 takes a free one; an empty host is every address. "
            "Names are those of listeners, such as SASL_SSL; several with commas.",
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
        typer.Option(
            metavar="[NAME://]HOST[:PORT]", help="The address for clients, if they can't reach the one listened on."
        ),
    ] = None,
    secure: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Let in only who has a password, over TLS; certificates, a first user and settings for clients are "
            "in DIR, and are made there if they aren't. Data are in DIR/data unless told otherwise.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve Prometheus at /metrics, and /healthz. Without a host, to this machine alone.",
        ),
    ] = None,
    metrics_token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="/metrics needs Authorization: Bearer and the token in this file."),
    ] = None,
    metrics_certfile: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Serve both over TLS: a PEM certificate with those that signed it."),
    ] = None,
    metrics_keyfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its key in PEM, where that isn't in the same file.")
    ] = None,
    metrics_cafile: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Only for clients with a certificate signed by one of these, in PEM."),
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep data in a temporary directory, and remove it at the end.")
    ] = False,
    durable: Annotated[
        bool, typer.Option("--durable", help="Sync to the disk before anything is acknowledged.")
    ] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Show it in a browser, too: kohort console, for this machine alone.")
    ] = False,
    console_port: Annotated[
        str | None, typer.Option(metavar="PORT", help="Its port; 8090 unless given, 0 takes a free one.")
    ] = None,
    console_write: Annotated[bool, typer.Option("--console-write", help="Let it change things.")] = False,
    ends_with_stdin: Annotated[
        bool,
        typer.Option(
            "--ends-with-stdin",
            help="Stop when standard input, a pipe, ends: with the program that keeps it open, even if that is killed.",
        ),
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

    One that only those use who have a password, encrypted; it says what clients need:

    kohort serve --secure kafka

    Metrics that other machines may read, if they have the token (Prometheus: authorization, credentials_file):

    openssl rand -hex 32 > token; kohort serve --metrics 0.0.0.0:9404 --metrics-token-file token

    With its console in a browser:

    kohort serve --ephemeral --console

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
            secure=secure,
            metrics=metrics,
            metrics_token_file=metrics_token_file,
            metrics_certfile=metrics_certfile,
            metrics_keyfile=metrics_keyfile,
            metrics_cafile=metrics_cafile,
            ephemeral=ephemeral,
            durable=durable,
            console=console,
            console_port=console_port,
            console_write=console_write,
            ends_with_stdin=ends_with_stdin,
            log_level=log_level,
            log_format=log_format,
        )
    )
