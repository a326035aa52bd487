"""`kohort users`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.client.admin import confirm, with_admin
from kohort.cli.client.listing_options import LimitOption, PatternOption, first, name_filter
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import err, fail, out, print_json

if TYPE_CHECKING:
    from kohort.client.admin import Admin

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
MechanismOption = Annotated[
    list[str] | None, typer.Option(metavar="MECHANISM", help="SCRAM-SHA-256 or SCRAM-SHA-512. Repeatable.")
]


@app.command("list")
def list_(
    pattern: PatternOption = None,
    limit: LimitOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List the users that log in with SCRAM, and by which mechanisms."""
    wanted = name_filter(pattern)
    users = with_admin(bootstrap_server, config, timeout, lambda admin: admin.users.describe())
    names = first(sorted(filter(wanted, users)), limit)
    rows = [(name, each.mechanism, each.iterations) for name in names for each in users[name]]
    if as_json:
        print_json([dict(zip(("name", "mechanism", "iterations"), row, strict=True)) for row in rows])
        return
    if not rows:
        err.print("no such users" if pattern else "no users yet; 'kohort users set NAME' makes one")
        return
    from kohort.cli.client.tables import table

    out.print(table(("User", "Mechanism", ">Iterations"), rows))


@app.command("set")
def set_(
    name: NameArgument,
    mechanism: MechanismOption = None,
    iterations: Annotated[
        int,
        typer.Option(metavar="N", min=4096, max=16_384, help="The more, the longer each guess of the password takes."),
    ] = 8192,
    password_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Read the password from a file's first line; - is standard input."),
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Make a user, or give one another password. It is asked for, unless a file has it; it isn't sent itself.

    kohort users set alice

    kohort users set robot --mechanism SCRAM-SHA-256 --password-file robot.password
    """
    mechanisms = _checked(mechanism) or ("SCRAM-SHA-512",)
    password = _password(name, password_file)

    async def work(admin: Admin) -> None:
        for each in mechanisms:
            await admin.users.set(name, password, mechanism=each, iterations=iterations)

    with_admin(bootstrap_server, config, timeout, work, changes=True)
    typer.echo(f"set: {name} with {', '.join(mechanisms)}")


@app.command()
def delete(
    name: NameArgument,
    mechanism: MechanismOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete a user, or the password of one mechanism. Open connections stay until they authenticate again.

    kohort users delete alice
    """
    wanted = _checked(mechanism)
    confirm(f"Delete {name}{' with ' + ', '.join(wanted) if wanted else ''}?", yes=yes)

    async def work(admin: Admin) -> list[str]:
        mechanisms = wanted or [each.mechanism for each in (await admin.users.describe(name))[name]]
        for each in mechanisms:
            await admin.users.delete(name, each)
        return list(mechanisms)

    deleted = with_admin(bootstrap_server, config, timeout, work, changes=True)
    typer.echo(f"deleted: {name} with {', '.join(deleted)}")


def _checked(mechanisms: list[str] | None) -> tuple[str, ...]:
    from kohort.client.admin import SCRAM_MECHANISMS

    for each in mechanisms or ():
        if each not in SCRAM_MECHANISMS:
            fail(f"--mechanism {each}: one of {', '.join(SCRAM_MECHANISMS)} is needed")
    return tuple(dict.fromkeys(mechanisms or ()))


def _password(name: str, file: str | None) -> str:
    """A password, from a file or as it is typed; never from the command line, which others can see."""
    if file is not None:
        try:
            lines = (sys.stdin.read() if file == "-" else Path(file).read_text()).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            fail(f"--password-file {file}: {error}")
        password = lines[0] if lines else ""
    elif sys.stdin.isatty():
        password = typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        fail("there is no terminal to ask for the password: give --password-file FILE, or - for standard input")
    if not password:
        fail("the password is empty")
    return password
