"""`kohort apps`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.client import completion
from kohort.cli.client.admin import confirm, existing_groups, with_admin
from kohort.cli.client.errors import explain, not_found
from kohort.cli.client.listing_options import LimitOption, PatternOption, first, name_filter
from kohort.cli.client.options import (
    DEFAULT_TIMEOUT,
    BootstrapOption,
    ConfigOption,
    JsonOption,
    TimeoutOption,
    client_config,
    options_name_a_cluster,
    with_patience,
)
from kohort.cli.terminal import err, fail, out, print_json, print_lines, printable
from kohort.plurals import several

if TYPE_CHECKING:
    from kohort.cli.client.app_report import AppReport
    from kohort.cli.client.app_reset import Belongings
    from kohort.cli.client.store_reset import StoreBelongings
    from kohort.client.admin import Admin

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.command("list")
def list_applications(
    pattern: PatternOption = None,
    limit: LimitOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Streams applications, with how far they lag.

    Kohort's and Kafka Streams' own; of classic groups without members those that Kohort's have committed in.
    """
    from kohort.extras import SPARK, require

    require("spark", "kohort apps list", SPARK)
    from kohort.cli.client.app_report import app_as_json, apps_table, is_application, may_be_application, read_apps

    wanted = name_filter(pattern)

    async def read(admin: Admin) -> list[AppReport]:
        listed = await admin.groups.list()
        names = [each.group_id for each in listed if may_be_application(each) and wanted(each.group_id)]
        return [each for each in await read_apps(admin, sorted(names)) if is_application(each)]

    reports = first(with_admin(bootstrap_server, config, timeout, read), limit)
    if as_json:
        print_json([app_as_json(each) for each in reports])
    else:
        out.print(apps_table(reports))


@app.command()
def describe(
    application: Annotated[
        str, typer.Argument(metavar="APP", help="Its application id.", autocompletion=completion.streams_groups)
    ],
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """A streams application: members and their tasks, what it reads with its lag, stores, internal topics.

    kohort apps describe word-count
    """
    from kohort.extras import SPARK, require

    require("spark", "kohort apps describe", SPARK)
    from kohort.cli.client.app_report import app_as_json, app_tables, is_application, read_apps

    async def read(admin: Admin) -> AppReport:
        await existing_groups(admin, [application])
        (report,) = await read_apps(admin, [application])
        if not is_application(report):
            fail(f"{application} is a {report.group.group.type.value} group, not a streams application's", 1)
        return report

    report = with_admin(bootstrap_server, config, timeout, read)
    if as_json:
        print_json(app_as_json(report))
    else:
        for each in app_tables(report):
            out.print(each)


@app.command()
def reset(
    application: Annotated[
        str, typer.Argument(metavar="APP", help="Its application id.", autocompletion=completion.streams_groups)
    ],
    state_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With the application's folder in this state_dir, on this machine."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only this store: the others, and the positions in all sources, stay.",
        ),
    ] = None,
    by_name: Annotated[
        bool, typer.Option("--by-name", help="With topics that only their names tell: APP-…-changelog, -repartition.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Remove a stopped streams application's state, internal topics and group, so that it begins from nothing.

    kohort apps reset word-count --state-dir /var/lib/kohort-streams

    Its sources and outputs stay. What the group's topology names as internal is removed. A classic group doesn't
    keep its topology: see with --dry-run which topics are named as the application's, and add --by-name.
    """
    if store is not None:
        if by_name or state_dir is not None:
            fail("--store needs neither --by-name nor --state-dir: its topics are known, and copies of it are cleared")
        _reset_store(
            application, store, dry_run=dry_run, yes=yes, as_json=as_json,
            run=partial(with_admin, bootstrap_server, config, timeout),
        )  # fmt: skip
        return
    from kohort.cli.client.app_reset import as_json as document
    from kohort.cli.client.app_reset import as_lines, find

    home = None if state_dir is None else _state(state_dir, application)
    found = with_admin(bootstrap_server, config, timeout, lambda admin: _found(admin, application, home))
    if not as_json:
        print_lines(as_lines(found, by_name=by_name))
    if found.unsure and not by_name and not dry_run:
        named = f"look whether {', '.join(found.by_name)} may go" if found.by_name else "look whether it is one's"
        fail(
            f"nothing tells what is a streams application's here but the name {application}: {named}, and give "
            "--by-name; nothing was done",
            1,
        )
    if not dry_run:
        confirm(f"Remove all of that? {application} begins from nothing then", yes=yes)

        async def remove(admin: Admin) -> None:
            stopped = await find(admin, application, home)
            _check(stopped)
            if state_dir is not None and home is not None:
                _delete_state(state_dir, application)
            # The group goes last: as long as it is there, another try knows what else belongs to the application.
            own, named = found.still(stopped)
            topics = [*own, *(named if by_name else ())]
            if topics:
                await admin.topics.delete(*topics)
            if stopped.group is not None:
                await admin.groups.delete(application)

        with_admin(bootstrap_server, config, timeout, remove, changes=True)
    if as_json:
        print_json(document(found, by_name=by_name, done=not dry_run))
    elif not dry_run:
        typer.echo(f"{printable(application)} is reset")


@app.command()
def plan(
    program: Annotated[
        str,
        typer.Argument(metavar="APP.PY|MODULE:APP", help="Its file, or its module and name; it isn't run."),
    ],
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """What a program would go on with, of what its application id has left. Changes nothing, and joins nothing.

    kohort apps plan shop.py

    kohort apps plan shop.orders:app

    For each store: kept, extended, rebuilt, new, left or refused, and why. It ends with 1 if something is refused. The
    cluster is the program's own, unless --bootstrap-server, --config or --cluster says another. The timeout is for
    finding it; Spark, which compiles the program, takes its time beyond that.
    """
    from kohort.extras import SPARK, require

    require("spark", "kohort apps plan", SPARK)
    from kohort.cli.client.load_program import load_program
    from kohort.cli.client.run import run
    from kohort.cli.client.upgrade_report import plan_as_json, plan_table
    from kohort.client.admin import Admin
    from kohort.client.errors import ClientError
    from kohort.protocol.errors import KafkaError
    from kohort.spark.errors import ProgramError

    application = load_program(program)
    if options_name_a_cluster(bootstrap_server, config):
        servers = client_config(bootstrap_server, config, timeout)
    else:
        own = application.settings.client
        servers = with_patience(replace(own, bootstrap_timeout_ms=max(1, int(timeout * 1000))))
    application.settings = replace(application.settings, client=servers)

    async def find_cluster() -> None:
        async with Admin(servers):
            pass

    run(find_cluster, timeout)
    name = printable(application.settings.application_id)
    err.print(f"compiling {name} with Spark, which takes a while", markup=False, soft_wrap=True)
    try:
        found = application.plan_upgrade()
    except ProgramError as error:
        fail(str(error), 1)
    except (KafkaError, ClientError) as error:
        fail(explain(error), 1)
    if as_json:
        print_json(plan_as_json(found))
    else:
        out.print(plan_table(found))
        for remark in found.remarks:
            typer.echo(printable(remark))
    if found.refused:
        raise typer.Exit(1)


@app.command("class-archive")
def class_archive(
    options: Annotated[
        bool, typer.Option("--options", help="Only print the options of a JVM that use it; there must be one.")
    ] = False,
) -> None:
    """Make an archive of Spark's classes, so that its JVM starts in half the time; it takes half a minute, once.

    Tests with TestDriver and kohort demo use it by themselves from then on. For a session of your own:

    spark-submit --driver-java-options "$(kohort apps class-archive --options)" program.py
    """
    from kohort.extras import SPARK, require

    require("spark", "kohort apps class-archive", SPARK)
    from kohort.spark.class_archive import jvm_options
    from kohort.spark.errors import ApplicationError
    from kohort.spark.testing.class_training import make_archive

    if options:
        if not (found := jvm_options()):
            fail("there is no archive for this Java and this Spark: make it with kohort apps class-archive", 1)
        typer.echo(found)
        return
    try:
        path = make_archive()
    except ApplicationError as error:
        fail(str(error), 1)
    typer.echo(f"{printable(str(path))} has {path.stat().st_size / 2**20:.0f} MiB")


def _reset_store(
    application: str, store: str, *, dry_run: bool, yes: bool, as_json: bool, run: Callable[..., StoreBelongings]
) -> None:
    from kohort.extras import SPARK, require

    require("spark", "kohort apps reset --store", SPARK)
    from kohort.cli.client.store_reset import find_store, reset_store, store_as_json, store_lines

    async def look(admin: Admin) -> StoreBelongings:
        await _found(admin, application, None)
        found = await find_store(admin, application, store)
        if found.nothing:
            fail(not_found("store", store, found.known), 1)
        if found.untold:
            fail(
                f"{printable(application)}'s offsets of {printable(', '.join(found.untold))} don't say what stores are "
                f"made of it, so it would go on as if it had {printable(store)}: run the program once more, with this "
                f"version of Kohort, which notes it; or reset all, without --store",
                1,
            )
        return found

    async def remove(admin: Admin) -> StoreBelongings:
        found = await look(admin)
        await reset_store(admin, application, found)
        return found

    found = run(look)
    if not as_json:
        print_lines(store_lines(found))
    if not dry_run:
        confirm(f"Remove all of that? {store} begins from nothing then", yes=yes)
        found = run(remove, changes=True)
    if as_json:
        print_json(store_as_json(application, found, done=not dry_run))
    elif not dry_run:
        typer.echo(f"{printable(store)} of {printable(application)} is reset")


async def _found(admin: Admin, application: str, home: Path | None) -> Belongings:
    from kohort.cli.client.app_reset import find

    found = await find(admin, application, home)
    if found.nothing:
        fail(not_found("group", application, [group.group_id for group in await admin.groups.list()]), 1)
    _check(found)
    return found


def _check(found: Belongings) -> None:
    """Ends the command unless the application may be one, and is stopped."""
    group = found.group
    if group is None:
        return
    if found.is_another:
        kind = f" of {group.protocol_type}" if group.protocol_type else ""
        fail(f"{found.application_id} is a {group.type.value} group{kind}, not a streams application's", 1)
    if group.members:
        fail(
            f"{found.application_id} has {several(len(group.members), 'member')}: stop all instances first, or if they "
            "are gone, wait for their session timeout; nothing was done",
            1,
        )


def _state(state_dir: Path, application: str) -> Path | None:
    from kohort.extras import SPARK, require

    require("spark", "kohort apps reset --state-dir", SPARK)
    from kohort.spark.state.deletion import application_directory

    return application_directory(state_dir, application)


def _delete_state(state_dir: Path, application: str) -> None:
    from kohort.spark.state.deletion import delete_application_directory
    from kohort.spark.state.errors import StateDirectoryError

    try:
        delete_application_directory(state_dir, application)
    except StateDirectoryError as error:
        fail(f"{error}; nothing was done", 1)
