"""`kohort place`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.bytes_input import input_name, read_text
from kohort.cli.client import completion
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, TimeoutOption
from kohort.cli.terminal import err, fail, out, print_json, printable
from kohort.extras import MissingExtraError

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.coordinator.placement.model import Group
    from kohort.coordinator.placement.outcome import Comparison
    from kohort.coordinator.placement.what_if import Change

INFEASIBLE: Final = 1
UNREACHABLE: Final = 3


def command(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE|-", help="A group in YAML or JSON: a file, or standard input.")
    ] = None,
    from_group: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="Read a running streams group instead of a file.",
            autocompletion=completion.streams_groups,
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANGE",
            help="add=2, add=2x4 (of four members each), add=1,zone=a, remove=NAME (a member or a process), "
            "standbys=1. Repeatable.",
        ),
    ] = None,
    assignor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="optimal or sticky; both unless given.",
            autocompletion=completion.words("optimal", "sticky"),
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every move.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if standbys can't all be placed.")] = False,
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the group as it was read: YAML, or JSON for *.json.")
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Place the tasks of a streams group, and show who gets what, how even that is, and what moves.

    Nothing is changed anywhere; it is what the broker would do.

    A group out of a file:

    kohort place group.yaml

    What happens if two instances are added to a group that runs, in Kafka (4.1 or later) or Kohort?

    kohort place --from-group word-count --what-if add=2

    If an instance is taken away, and each stateful task has a standby?

    kohort place group.yaml --what-if remove=m3 --what-if standbys=1

    Keep a running group, to look at it later:

    kohort place --from-group word-count --save group.yaml

    A file has subtopologies and members, and as much of the rest as is known (docs/placement.md has it all):

    {subtopologies: {"0": {partitions: 6, state_stores: 2}}, members: {m1: {active: {"0": 0-5}}, m2: {}}}

    Exit codes:

    0: all is placed.

    1: it can't be: there is no instance to run the tasks, or, with --strict, too few processes for the standbys; or
    --assignor optimal needs OR-Tools.

    2: there is a mistake in the call or in the file.

    3: the running group can't be read.
    """
    from kohort.coordinator.placement import ASSIGNORS
    from kohort.coordinator.placement.outcome import InfeasibleError

    if assignor is not None and assignor not in ASSIGNORS:
        fail(f"--assignor {assignor}: one of {', '.join(ASSIGNORS)} is needed")
    changes = _changes(what_if or [])
    group = _group(file, from_group, bootstrap_server, config, timeout)
    if save is not None:
        _save(group, save)
    try:
        comparison = _comparison(group, changes, assignor)
    except InfeasibleError as error:
        fail(f"{error}; --what-if add=1 adds one", INFEASIBLE)
    except ValueError as error:
        fail(f"--what-if: {error}")
    if as_json:
        from kohort.cli.placing.as_json import comparison_as_json

        print_json(comparison_as_json(comparison))
    else:
        _print(comparison, bool(changes))
    if missing := _missing_standbys(comparison):
        if strict:
            fail(missing, INFEASIBLE)
        err.print(f"note: {missing}", soft_wrap=True)


def _comparison(group: Group, changes: list[Change], assignor: str | None) -> Comparison:
    """The comparison of the assignor, or of all; without `optimal` where it needs OR-Tools and wasn't asked for."""
    from kohort.coordinator.placement import ASSIGNORS
    from kohort.coordinator.placement.outcome import compare

    try:
        return compare(group, changes, {name: ASSIGNORS[name] for name in ASSIGNORS if assignor in (None, name)})
    except MissingExtraError as error:
        if assignor is not None:
            fail(str(error), INFEASIBLE)
        err.print(f"note: {error}", soft_wrap=True, markup=False)
        return compare(group, changes, {name: ASSIGNORS[name] for name in ASSIGNORS if name != "optimal"})


def _changes(texts: list[str]) -> list[Change]:
    from kohort.coordinator.placement.what_if import parse_change

    changes = []
    for text in texts:
        try:
            changes.append(parse_change(text))
        except ValueError as error:
            fail(f"--what-if {text}: {error}")
    return changes


def _group(
    file: str | None, from_group: str | None, bootstrap_server: str | None, config: str | None, timeout: float
) -> Group:
    """The group out of the file or the cluster; whatever is wrong with it ends the command."""
    if file is not None and from_group is None:
        return _group_of_file(file)
    if from_group is not None and file is None:
        return _running_group(from_group, bootstrap_server, config, timeout)
    fail("one group is needed: FILE (- for standard input), or --from-group GROUP")


def _group_of_file(file: str) -> Group:
    from kohort.cli.placing.document import DocumentError
    from kohort.cli.placing.group_file import read_group

    try:
        return read_group(read_text(file), input_name(file))
    except DocumentError as error:
        fail(str(error))
    except typer.Exit:  # it said why
        raise typer.Exit(2) from None


def _running_group(group_id: str, bootstrap_server: str | None, config: str | None, timeout: float) -> Group:
    from kohort.cli.client.admin import existing_groups, with_admin
    from kohort.client.placed_group import read_placed_group

    async def read(admin: Admin) -> tuple[Group, list[str]]:
        await existing_groups(admin, [group_id])
        return await read_placed_group(admin, group_id)

    try:
        group, notes = with_admin(bootstrap_server, config, timeout, read)
    except typer.Exit as ended:  # it said why
        raise typer.Exit(UNREACHABLE if ended.exit_code == 1 else ended.exit_code) from None
    for note in notes:
        err.print(f"note: {printable(note)}", soft_wrap=True, markup=False)
    return group


def _save(group: Group, path: str) -> None:
    from kohort.cli.placing.group_text import group_as_json, group_as_yaml

    text = group_as_json(group) if path.endswith(".json") else group_as_yaml(group)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        fail(f"--save: can't write {printable(path)}: {getattr(error, 'strerror', None) or error}")


def _print(comparison: Comparison, what_if: bool) -> None:
    """The placement of the first assignor, what moves, and what all of them are worth."""
    from kohort.cli.placing.report import metrics_table, moves_table, placement_table

    name, outcome = next(iter(comparison.outcomes.items()))
    out.print(placement_table(f"Placed by {name}{', after the changes' if what_if else ''}", outcome, comparison.now))
    if outcome.moves:
        out.print(moves_table(outcome.moves))
    out.print(metrics_table(comparison))


def _missing_standbys(comparison: Comparison) -> str | None:
    """A sentence about standbys that nobody could be given."""
    for name, outcome in comparison.outcomes.items():
        metrics = outcome.metrics
        if metrics.standbys_placed < metrics.standbys_wanted:
            processes = len({member.process or (member.id,) for member in outcome.group.members})
            return (
                f"{metrics.standbys_placed:,} of {metrics.standbys_wanted:,} standbys are placed ({name}): a task's "
                f"copies are in processes of their own, and there {'is 1' if processes == 1 else f'are {processes:,}'}"
            )
    return None
