"""`kohort features`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.client.admin import confirm, with_admin
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import fail, out, print_json, printable

if TYPE_CHECKING:
    from kohort.client.admin import Admin

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

LevelsArgument = Annotated[
    list[str], typer.Argument(metavar="FEATURE=LEVEL…", help="Such as share.version=1; 0 switches it off.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only check; change nothing.")]


@app.command()
def describe(
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show the levels of the cluster's features, and those that its brokers could have."""
    features = with_admin(bootstrap_server, config, timeout, lambda admin: admin.cluster.features())
    rows = [
        (name, features.supported[name].least, features.supported[name].most, features.finalized.get(name, 0))
        for name in sorted(features.supported)
    ]
    if as_json:
        keys = ("feature", "least", "most", "level")
        print_json({"epoch": features.epoch, "features": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    from kohort.cli.client.tables import table

    out.print(table(("Feature", ">Least", ">Most", ">Level"), rows))


@app.command()
def upgrade(
    levels: LevelsArgument,
    dry_run: DryRunOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Raise levels: all of these, or none.

    kohort features upgrade share.version=2
    """
    wanted = _levels(levels)

    async def work(admin: Admin) -> None:
        await admin.cluster.update_features(wanted, validate_only=dry_run)

    with_admin(bootstrap_server, config, timeout, work, changes=not dry_run)
    _tell("upgraded", wanted, dry_run=dry_run)


@app.command()
def downgrade(
    levels: LevelsArgument,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Also where data is lost with it.")] = False,
    dry_run: DryRunOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Lower levels, all of these or none; level 0 switches a feature off, and clients that use it get errors at once.

    kohort features downgrade group.version=0
    """
    wanted = _levels(levels)
    if not dry_run:
        confirm(f"Lower {', '.join(f'{name} to {level}' for name, level in wanted.items())}?", yes=yes)

    async def work(admin: Admin) -> None:
        await admin.cluster.update_features(wanted, downgrade=True, unsafe=unsafe, validate_only=dry_run)

    with_admin(bootstrap_server, config, timeout, work, changes=not dry_run)
    _tell("downgraded", wanted, dry_run=dry_run)


def _levels(given: list[str]) -> dict[str, int]:
    found = {}
    for each in given:
        name, _, level = each.partition("=")
        if not name or not level.isdecimal() or int(level) >= 2**15:
            fail(f"{each}: FEATURE=LEVEL is wanted, such as share.version=1")
        found[name] = int(level)
    return found


def _tell(done: str, levels: dict[str, int], *, dry_run: bool) -> None:
    what = ", ".join(f"{printable(name)} to {level}" for name, level in levels.items())
    typer.echo(f"could be {done}: {what}" if dry_run else f"{done} {what}")
