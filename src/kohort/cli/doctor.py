"""`kohort doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.client.options import (
    DEFAULT_TIMEOUT,
    BootstrapOption,
    ConfigOption,
    JsonOption,
    check_timeout,
    client_config,
    is_named,
    options_name_a_cluster,
)
from kohort.cli.client.run import run
from kohort.cli.terminal import fail, print_json, print_lines

if TYPE_CHECKING:
    from kohort.cli.diagnosis.finding import Finding


def command(
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="APP.PY|MODULE:APP", help="A streams application, too: its file, or its module and name."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as wrong.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", callback=check_timeout, help="For each request to the cluster."),
    ] = DEFAULT_TIMEOUT,
    watch_s: Annotated[
        float,
        typer.Option(
            "--watch-groups",
            metavar="SECONDS",
            min=0,
            max=600,
            help="How long groups with members are watched; 6 unless given, 0 looks once.",
        ),
    ] = 6.0,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with this machine, with a cluster, or with a streams application: why that matters, what to do.

    kohort doctor -b kafka-1.example:9092

    The machine: Python, extras, Java, room on disks, limits, the clock. The cluster: whether its brokers can be reached
    at the addresses that they tell clients, which is the commonest mistake; certificates that end soon; protocols that
    are switched off; partitions without a leader or with too few replicas; transactions that hang; groups that are
    stuck, whose members come and go, that lag behind without members, or that subscribe to topics that aren't there.

    kohort doctor app.py

    kohort doctor shop.orders:app

    The program is loaded, but not run: where it calls run or start, loading ends. It is compiled, for which Spark is
    started, and compared with its own cluster: topics, numbers of partitions, schema registries, the state it goes on
    with, its state directory. Nothing is changed anywhere. What the program prints goes to standard error.

    Exit codes: 0 if nothing is wrong; 1 if something is; 2 for a wrong call.
    """
    from kohort.cli.diagnosis.cluster import cluster_findings
    from kohort.cli.diagnosis.finding import Level, as_lines
    from kohort.cli.diagnosis.machine import machine_findings

    if program is not None and options_name_a_cluster(bootstrap_server, config):
        fail("a program says its cluster itself: leave out --bootstrap-server, --config and --cluster")
    found = [*machine_findings()]
    if program is None:
        named = is_named(bootstrap_server, config)
        settings = client_config(bootstrap_server, config, timeout)
        found += run(lambda: cluster_findings(settings, named=named, timeout=timeout, watch_s=watch_s))
    else:
        found += _of_program(program, timeout, watch_s)
    if as_json:
        print_json([each.as_json() for each in found])
    else:
        print_lines([*as_lines(found), [], [(_in_all(found), "bold")]])
    worst = {each.level for each in found}
    if Level.WRONG in worst or (strict and Level.WARNING in worst):
        raise typer.Exit(1)


def _of_program(place: str, timeout: float, watch_s: float) -> list[Finding]:
    """Looks at a program, and at its cluster."""
    from kohort.extras import SPARK, require

    require("spark", "looking at a program", SPARK)
    from kohort.cli.client.load_program import load_program
    from kohort.cli.diagnosis import program as diagnosis
    from kohort.cli.diagnosis.cluster import cluster_findings
    from kohort.cli.diagnosis.finding import Level

    try:
        application = load_program(place)
    except (typer.Exit, SystemExit) as error:
        if isinstance(error, typer.Exit):
            raise
        return [diagnosis.not_loaded(place, error)]
    except Exception as error:
        return [diagnosis.not_loaded(place, error)]
    settings = application.settings
    found = run(lambda: cluster_findings(settings.client, named=True, timeout=timeout, watch_s=watch_s))
    reached = any(each.level is Level.FINE for each in found)  # nothing is, of a cluster that doesn't answer
    compiled, whole = diagnosis.compiled_findings(application, place)
    found += compiled
    found += diagnosis.state_findings(settings.state_dir, settings.application_id)
    if whole is not None:
        found += diagnosis.registry_findings(whole)
        if reached:
            found += run(lambda: diagnosis.fitting_findings(whole, settings, timeout))
    return found


def _in_all(found: list[Finding]) -> str:
    from kohort.cli.diagnosis.finding import Level

    wrong = sum(each.level is Level.WRONG for each in found)
    warnings = sum(each.level is Level.WARNING for each in found)
    if not wrong and not warnings:
        return "Nothing is wrong."
    from kohort.plurals import several

    said = [f"{several(wrong, 'thing')} wrong"] if wrong else []
    said += [several(warnings, "warning")] if warnings else []
    return " and ".join(said) + "."
