"""Options that all client commands have: the cluster, settings, the timeout."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from kohort.cli.client.profiles import named_by_option, named_cluster, read_profiles, readers_told
from kohort.cli.terminal import err, fail, printable
from kohort.client.errors import ConfigError

if TYPE_CHECKING:
    from kohort.cli.client.profiles import Profiles
    from kohort.client.config import ClientConfig

N = TypeVar("N", int, float)

ENVIRONMENT: Final = "KOHORT_BOOTSTRAP_SERVERS"
DEFAULT_SERVERS: Final = "localhost:9092"
DEFAULT_TIMEOUT: Final = 15.0

BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        help=f"Brokers to find the cluster by; unless given, ${ENVIRONMENT} or {DEFAULT_SERVERS}.",
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A client's settings by Kafka's keys, such as those of TLS and SASL: a client.properties.",
    ),
]
InternalOption = Annotated[bool, typer.Option("--internal", help="With Kafka's internal topics.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def within(least: float, most: float) -> Callable[[N | None], N | None]:
    """The callback of a number's option; typer's own range is shown beside it, and leaves a narrow help no room."""

    def check(value: N | None) -> N | None:
        if value is not None and not least <= value <= most:
            raise typer.BadParameter(f"{value:,}: from {least:,} to {most:,} is possible")
        return value

    return check


def check_timeout(seconds: float) -> float:
    """The callback of `--timeout`; typer's own range would take up space in the help."""
    if not 0.001 <= seconds <= 86_400:
        raise typer.BadParameter(f"{seconds:g} s: from 0.001 s to a day is possible")
    return seconds


TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", callback=check_timeout, help="For the whole command.")
]


def client_config(bootstrap_server: str | None, config: str | None, timeout: float | None = None) -> ClientConfig:
    """The cluster that the options name, for commands without settings of their own.

    Settings of producers and consumers in the file are ignored, so that one file works for all commands.

    Args:
        timeout: seconds until connecting fails; None tries for ever.
    """
    return client_settings(bootstrap_server, config, timeout)[0]


def is_named(bootstrap_server: str | None, config: str | None) -> bool:
    """Whether somebody has said which cluster, in whatever way, or it is the one that is looked for anyway."""
    if bootstrap_server or config or named_cluster() or os.environ.get(ENVIRONMENT):
        return True
    try:
        return read_profiles(needed=False).default is not None
    except ConfigError as error:
        fail(str(error))


def client_settings(
    bootstrap_server: str | None, config: str | None, timeout: float | None = None
) -> tuple[ClientConfig, dict[str, str]]:
    """The cluster that the options name, and the file's settings of producers and consumers, by Kafka's keys.

    The option overrides the file, which overrides the cluster's profile, if `--cluster` names one. Without these three
    the environment says which cluster, then the default of the profiles.
    """
    from kohort.client.config import ClientConfig

    if bootstrap_server == "":  # for instance an unset variable: it must not mean another cluster
        fail("--bootstrap-server is empty: HOST:PORT is wanted")
    timeout_ms = None if timeout is None else max(1, int(timeout * 1000))
    try:
        profile, source = _profile(bootstrap_server, config)
        if config is None and not source:
            servers = bootstrap_server or os.environ.get(ENVIRONMENT) or DEFAULT_SERVERS
            return with_patience(ClientConfig(bootstrap_servers=servers, bootstrap_timeout_ms=timeout_ms)), {}
        default = {} if source else {"bootstrap.servers": os.environ.get(ENVIRONMENT) or DEFAULT_SERVERS}
        properties = default | profile
        if config is not None:
            from kohort.client.properties import read_file

            properties |= read_file(Path(config))
        found, others = ClientConfig.from_properties(
            properties,
            " and ".join(filter(None, (source, config))),
            bootstrap_servers=bootstrap_server,
            bootstrap_timeout_ms=timeout_ms,
        )
        return with_patience(found), others
    except ConfigError as error:
        fail(str(error))


def _profile(bootstrap_server: str | None, config: str | None) -> tuple[dict[str, str], str]:
    """The properties of the cluster that is named, or is the default, and where they are from; none where none is."""
    if (bootstrap_server or config) and named_by_option.get() is None:
        return {}, ""  # whatever is in the file, and be it broken
    name = named_cluster()
    if name is None and os.environ.get(ENVIRONMENT):
        return {}, ""
    profiles = read_profiles(needed=name is not None)
    name = profiles.default if name is None else name
    if name is None:
        return {}, ""
    if not readers_told.get():
        warn_of_readers(profiles)
        readers_told.set(True)
    return profiles.properties(name), f"{profiles.path} [{name}]"


def warn_of_readers(profiles: Profiles) -> None:
    """Says on standard error that others may read passwords."""
    if profiles.readable:
        path = printable(str(profiles.path))
        err.print(f"note: others may read {path}, which has passwords: chmod 600 {path}", markup=False, soft_wrap=True)


def options_name_a_cluster(bootstrap_server: str | None, config: str | None) -> bool:
    """Whether one of the options `--bootstrap-server`, `--config` and `--cluster` is given."""
    return (bootstrap_server, config, named_by_option.get()) != (None, None, None)


def with_patience(config: ClientConfig) -> ClientConfig:
    """Makes a connection time out before the command does, so that its error can be reported, and says what it awaits.

    That comes once, on standard error, as soon as the first attempt has failed or has taken a second.
    """
    from kohort.client.no_broker import saying_once

    ms = config.bootstrap_timeout_ms
    patience = "" if ms is None else f", for {ms / 1000:g} s"

    def say(text: str) -> None:
        err.print(f"waiting{patience}: {printable(text)}", markup=False, soft_wrap=True)

    waiting = saying_once(config, say)
    if config.bootstrap_timeout_ms is None:
        return waiting
    most = max(1, config.bootstrap_timeout_ms * 2 // 3)
    return replace(waiting, socket_connection_setup_timeout_ms=min(config.socket_connection_setup_timeout_ms, most))
