"""`kohort log`: a server's data directory, looked at without the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from kohort.cli.client.admin import confirm
from kohort.cli.client.options import JsonOption
from kohort.cli.client.tables import table
from kohort.cli.data.progress import in_words
from kohort.cli.terminal import complain, err, fail, out, print_json
from kohort.plurals import several

if TYPE_CHECKING:
    from kohort.log.checking import Finding
    from kohort.log.data_directory import PartitionName
    from kohort.log.directory_check import DirectoryCheck

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

PartitionOption = Annotated[
    list[str] | None,
    typer.Option(metavar="TOPIC-N", help="Only this partition, by the name of its directory. Repeatable."),
]


@app.callback()
def log() -> None:
    """A server's data directory, looked at without the server."""


@app.command()
def check(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The data directory of a server.")],
    partition: PartitionOption = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be; the server must be stopped.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask before the repair.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find damages in a data directory: every batch is read, with its checksum.

    It finds segments that are missing or overlap, batches that are damaged or out of order, indexes that disagree with
    their log, checkpoints beyond the end, batches that were set aside, what crashes have left over, strays, and damages
    of the metadata log. Nothing is changed, and a server may run meanwhile; what it writes just then may look torn.

    kohort log check /var/lib/kohort

    With --repair, each finding's remedy is done after it was shown: damaged batches are cut out, indexes made anew,
    batches that were set aside brought back where no other records have their offsets. What is lost stays lost, and is
    noted in the partition's directory, so that it isn't told again. Make a copy of the directory first.

    kohort log check /var/lib/kohort --partition orders-0 --repair

    Exit codes: 0 if nothing is wrong, or nothing any more; 1 if something is; 2 for a wrong call.
    """
    checked, names = _opened(directory, partition)
    if repair:
        from kohort.log.data_directory import locked

        try:
            with locked(directory):
                findings = _found(checked, names, everything=not partition)
                _show(findings, repair=True, as_json=False, console=err if as_json else out)
                mended = sorted({each.partition for each in findings if each.remedy})
                if mended:
                    confirm(f"Repair {several(len(mended), 'partition')} in {directory}?", yes=yes)
                    _repair(checked, [name for name in names if str(name) in mended])
                    checked, names = _opened(directory, partition)
                    findings = _found(checked, names, everything=not partition)
        except OSError as error:
            fail(f"{error.filename or directory}: {error.strerror or error}", 1)
        if mended and not as_json:
            out.print("After the repair:")
        elif not as_json:
            raise typer.Exit(1 if findings else 0)  # they were shown
    else:
        findings = _found(checked, names, everything=not partition)
    _show(findings, repair=False, as_json=as_json)
    if findings:
        raise typer.Exit(1)


def _opened(directory: Path, wanted: list[str] | None) -> tuple[DirectoryCheck, list[PartitionName]]:
    from kohort.log.directory_check import DirectoryCheck

    try:
        checked = DirectoryCheck(directory)
    except (OSError, ValueError) as error:
        fail(str(error) if isinstance(error, ValueError) else f"{directory}: {error.strerror}")
    names = checked.partitions()
    if wanted:
        known = {str(name): name for name in names}
        unknown = [name for name in wanted if name not in known]
        if unknown:
            from difflib import get_close_matches

            near = get_close_matches(unknown[0], known, 1)
            fail(f"no partition {unknown[0]} in {directory}" + (f"; did you mean {near[0]}?" if near else ""))
        names = [known[name] for name in wanted]
    return checked, names


def _found(checked: DirectoryCheck, names: list[PartitionName], *, everything: bool) -> list[Finding]:
    """Checks partitions with a bar on standard error, if that is a terminal; a file that can't be read is a finding."""
    from kohort.log.checking import Finding

    findings = [*checked.findings, *checked.missing(names)] if everything else []
    with _bar(sum(map(checked.size, names))) as advance:
        for name in names:
            try:
                findings += checked.check(name, advance)
            except OSError as error:
                what = f"it can't be read: {error.strerror or error}"
                findings.append(Finding(str(name), "unreadable", Path(error.filename or "").name, what))
    return findings


def _repair(checked: DirectoryCheck, names: list[PartitionName]) -> None:
    now = time.time_ns() // 1_000_000
    with _bar(sum(map(checked.size, names))) as advance:
        for name in names:
            size = checked.size(name)
            try:
                checked.repair(name, now)
            except OSError as error:
                complain(f"{name} isn't repaired: {error}")
            advance(size)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    if not err.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=err, transient=True) as display:
        task = display.add_task(in_words(total), total=total)
        yield lambda size: display.advance(task, size)


def _show(findings: list[Finding], *, repair: bool, as_json: bool, console: Console = out) -> None:
    if as_json:
        print_json([
            {
                "partition": each.partition, "kind": each.kind, "file": each.file, "what": each.what,
                "offsets": [{"from": first, "to": end - 1} for first, end in each.offsets],
                "bytes": each.size, "remedy": each.remedy,
            }
            for each in findings
        ])  # fmt: skip
        return
    if not findings:
        console.print("Nothing is wrong.")
        return
    rows = [
        (
            each.partition or None,
            each.kind,
            each.file or None,
            ", ".join(map(str, each.offsets)) or None,
            in_words(each.size) if each.size else None,
            each.what,
            each.remedy or None,
        )
        for each in findings
    ]
    last = "Repair" if repair else "--repair would"
    console.print(table(("Partition", "Kind", "File", "Offsets", ">Size", "What", last), rows))
