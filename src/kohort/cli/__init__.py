"""The command `kohort`.

Modules are imported when they are needed: `--version` and `--help` are answered from the table below, and a sub-command
loads its own module.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn, TextIO

from kohort import __version__
from kohort.extras import MissingExtraError

if TYPE_CHECKING:
    import typer

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "acls": ("kohort.cli.acls", "Access rules: who may do what to which topics and groups: list, add, remove."),
    "apps": (
        "kohort.cli.apps",
        "Streams applications: list, describe, reset one or a store, plan a change.",
    ),
    "cluster": ("kohort.cli.cluster", "A cluster at a glance: brokers, topics and groups."),
    "clusters": (
        "kohort.cli.clusters",
        "Names for clusters, which --cluster takes: list, show, say which is the default.",
    ),
    "configs": ("kohort.cli.configs", "Settings of topics, brokers, groups and client metrics: describe and alter."),
    "console": ("kohort.cli.console", "A cluster in a browser: groups with members and lag, topics and records."),
    "consume": ("kohort.cli.consume", "Read a topic's records: as text, JSON lines or Parquet."),
    "demo": ("kohort.cli.demo.command", "A streams application in PySpark on a year of flights, through a crash."),
    "doctor": ("kohort.cli.doctor", "What is wrong with this machine, a cluster or a program, and what to do."),
    "features": ("kohort.cli.features", "Protocols that the cluster has switched on: describe, upgrade, downgrade."),
    "groups": ("kohort.cli.groups", "Groups of every type: members, assignments, offsets and lag; reset and delete."),
    "log": ("kohort.cli.log", "A server's data directory: find damages, and mend what can be."),
    "logdirs": ("kohort.cli.logdirs", "What takes the room on brokers' disks: directories, topics, partitions."),
    "perf": ("kohort.cli.perf", "How fast a cluster takes and gives records, and how long that takes."),
    "place": (
        "kohort.cli.place",
        "Place a streams group's tasks: which member gets which, how even it is, what moves.",
    ),
    "produce": ("kohort.cli.produce", "Write records to a topic: lines, JSON lines, CSV or Parquet."),
    "quotas": ("kohort.cli.quotas", "How much users, client ids and addresses may do: list, set, remove."),
    "serve": ("kohort.cli.serve", "Run a broker that Kafka clients connect to."),
    "topics": ("kohort.cli.topics", "Topics: list, create, describe, alter and delete; delete the oldest records."),
    "transactions": ("kohort.cli.transactions", "Transactional ids: list and describe; what has been open for long."),
    "users": ("kohort.cli.users", "Users that log in with a password (SCRAM): list, set, delete."),
    "wire": ("kohort.cli.wire", "Kafka's wire protocol: list, show, decode, encode and check messages and batches."),
}
"""Sub-commands: the module with their `app` or `command`, and a line of help."""

WITHOUT_TYPER: Final[dict[str, str]] = {"serve": "kohort.cli.run_server"}
"""Modules of sub-commands that start quickly: `run_plain` takes arguments that don't need typer."""


def main() -> None:
    _prepare_streams()
    stdout = sys.stdout
    try:
        try:
            _run(sys.argv[1:])
        finally:
            stdout.flush()  # here, where a failure can still be reported
    except MissingExtraError as error:
        _end(str(error))
    except BrokenPipeError:  # the reader has closed its end: `kohort wire list | head`
        _discard(stdout)
        sys.exit(1)
    except OSError as error:
        _discard(stdout)
        _end(f"can't write the output: {error.strerror or error}")


def _run(arguments: list[str]) -> None:
    completing = "_KOHORT_COMPLETE" in os.environ
    if not completing and arguments == ["--version"]:
        sys.stdout.write(f"kohort {__version__}\n")
    elif not completing and (not arguments or arguments[0] in ("-h", "--help")):
        sys.stdout.write(_help(sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    elif (
        completing
        or arguments[0] not in WITHOUT_TYPER
        or not import_module(WITHOUT_TYPER[arguments[0]]).run_plain(arguments[1:])
    ):
        names = arguments[:1] if arguments[:1] and arguments[0] in COMMANDS and not completing else list(COMMANDS)
        _application(names)(prog_name="kohort")


def _prepare_streams() -> None:
    """Escapes characters that an output can't encode. A stream that was closed is None in Python."""
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(os.devnull, "w"), "utf-8")
    if sys.stdout is None:
        _end("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard(stream: TextIO) -> None:
    """Discards what couldn't be written, so that the interpreter doesn't try again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end(message: str) -> NoReturn:
    try:
        sys.stderr.write(f"error: {message}\n")
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)
    sys.exit(1)


def _help(colour: bool) -> str:
    bold, plain = ("\x1b[1m", "\x1b[0m") if colour else ("", "")
    width = max(map(len, COMMANDS))
    commands = "".join(f"  {bold}{name:<{width}}{plain}  {about}\n" for name, (_, about) in COMMANDS.items())
    return (
        "A Kafka broker, commands for any Kafka cluster, and streams applications on PySpark.\n\n"
        f"{bold}Usage:{plain} kohort COMMAND [OPTIONS]\n\n"
        f"{bold}Commands{plain} (each explains itself with --help)\n{commands}\n"
        f"{bold}Options{plain}\n"
        "  --version             Print the version.\n"
        "  --install-completion  Complete commands and options in this shell.\n"
        "  --show-completion     Print that completion.\n"
        "  -h, --help            Print this.\n"
    )


def _application(names: list[str]) -> typer.Typer:
    import typer

    from kohort.cli.client.client_command import ClientCommand, with_cluster_option
    from kohort.cli.client.elsewhere import Commands

    app = typer.Typer(
        cls=Commands,
        help="A Kafka broker, commands for any Kafka cluster, and streams applications on PySpark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        path, about = COMMANDS[name]
        module = import_module(path)
        if hasattr(module, "app"):
            app.add_typer(with_cluster_option(module.app), name=name, help=about)
        else:
            app.command(name, cls=ClientCommand, short_help=about)(module.command)

    @app.callback()
    def kohort() -> None:
        """Makes `kohort` a group, even with one sub-command."""

    return app
