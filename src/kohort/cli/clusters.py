"""`kohort clusters`: the profiles that `--cluster` names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.client import completion
from kohort.cli.client.options import ENVIRONMENT, JsonOption, warn_of_readers
from kohort.cli.client.profiles import CLUSTER, HIDDEN, is_secret, read_profiles, with_default
from kohort.cli.terminal import err, fail, out, print_json, printable
from kohort.client.errors import ConfigError

if TYPE_CHECKING:
    from kohort.cli.client.profiles import Profiles

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", autocompletion=completion.clusters)]


@app.callback()
def clusters() -> None:
    """Clusters by name, for --cluster NAME: tables of ~/.config/kohort/clusters.toml with Kafka's keys.

    [prod]

    bootstrap.servers = "kafka-1.example:9093"

    security.protocol = "SASL_SSL"

    The options --cluster, --bootstrap-server and --config go before KOHORT_CLUSTER in the environment, that before
    KOHORT_BOOTSTRAP_SERVERS, and that before the default cluster. docs/cli.md has the whole of it.
    """


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the clusters that have a name, and which one is the default."""
    found = _read()
    rows = [_row(found, name, name == found.default) for name in sorted(found.clusters)]
    for variable in (CLUSTER, ENVIRONMENT):
        if value := os.environ.get(variable):
            err.print(
                f"note: {variable} is set, and goes before the default: {printable(value)}",
                markup=False,
                soft_wrap=True,
            )
            break
    if as_json:
        print_json(rows)
        return
    if not rows:
        err.print(f"no clusters yet: {found.path} has a table of Kafka's keys for each; see --help", soft_wrap=True)
        return
    from kohort.cli.client.tables import table

    shown = (
        (each["name"], each["bootstrap_servers"], each["security_protocol"], "default" if each["default"] else "")
        for each in rows
    )
    out.print(table(("Cluster", "Brokers", "Security", ""), shown))


@app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a cluster's settings, without passwords.

    kohort clusters show prod
    """
    found = _read()
    try:
        properties = found.properties(name)
    except ConfigError as error:
        fail(str(error))
    shown = {key: HIDDEN if is_secret(key) else value for key, value in properties.items()}
    if as_json:
        print_json({"name": name, "default": name == found.default, "file": str(found.path), "settings": shown})
        return
    from kohort.cli.client.tables import table

    out.print(table(("Setting", "Value"), shown.items(), title=name))


@app.command()
def default(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The cluster.", autocompletion=completion.clusters)
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No cluster: localhost:9092, if none is named.")] = False,
) -> None:
    """Say which cluster is used where none is named. The file's comments stay.

    kohort clusters default dev
    """
    found = _read()
    if (name is None) != none:
        fail("which cluster? Give its name, or --none")
    if name is not None and name not in found.clusters:
        try:
            found.properties(name)
        except ConfigError as error:
            fail(str(error))
    if not found.path.exists():
        typer.echo("there is no default cluster")
        return
    try:
        _replace(found, with_default(found.path.read_text(encoding="utf-8"), name))
    except ConfigError as error:
        fail(f"{found.path}: {error}", 1)
    except OSError as error:
        fail(f"{found.path}: {error.strerror or error}", 1)
    typer.echo("there is no default cluster" if name is None else f"the default cluster is {printable(name)}")


def _read() -> Profiles:
    try:
        found = read_profiles()
    except ConfigError as error:
        fail(str(error))
    warn_of_readers(found)
    return found


def _replace(found: Profiles, text: str) -> None:
    """Writes the file in one step, and leaves who may read it."""
    path = found.path.resolve()  # it may be a link to one that is kept elsewhere
    new = path.with_name(f".{path.name}.new")
    mode = path.stat().st_mode & 0o777
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
        os.fchmod(file.fileno(), mode)
        file.write(text)
    new.replace(path)


def _row(found: Profiles, name: str, current: bool) -> dict[str, Any]:
    try:
        properties = found.properties(name)
    except ConfigError as error:
        err.print(f"note: {printable(str(error))}", markup=False, soft_wrap=True)
        properties = dict(found.clusters[name])
    servers = properties.get("bootstrap.servers")
    protocol = properties.get("security.protocol", "PLAINTEXT")
    return {"name": name, "bootstrap_servers": servers, "security_protocol": protocol, "default": current}
