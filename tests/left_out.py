"""What the runs of `make test` did and left out, in one table, from the reports that pytest wrote (`--junit-xml`).

python -m tests.left_out .cache/test/*.xml
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from tests.tools import TOOLS


@dataclass
class Outcome:
    """Of tests: how many passed and failed, and how many were left out for which reason."""

    passed: int = 0
    failed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def read(reports: Iterable[Path]) -> Outcome:
    """The sum of all reports; a test that errors while it is set up or cleaned up has failed."""
    outcome = Outcome()
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                outcome.failed += 1
            elif skipped is not None:
                outcome.left_out[skipped.get("message", "")] += 1
            else:
                outcome.passed += 1
    return outcome


def table(left_out: Counter[str]) -> Table:
    """A row a reason, the most frequent first."""
    shown = Table(title="Tests that were left out")
    shown.add_column("Missing")
    shown.add_column("Tests", justify="right")
    shown.add_column("Run this as root, then make test again", overflow="fold")
    tools = {tool.missing: tool for tool in TOOLS.values()}
    for reason, number in left_out.most_common():
        tool = tools.get(reason)
        what, remedy = (f"{tool.title}, {tool.used_for}", tool.remedy) if tool else (reason, "")
        shown.add_row(what, f"{number:,}", remedy)
    return shown


def main() -> None:
    # A run that couldn't even begin has no report, and has said why.
    outcome = read(path for path in map(Path, sys.argv[1:]) if path.exists())
    console = Console(width=None if Console().is_terminal else 140)
    if outcome.left_out:
        console.print(table(outcome.left_out))
    skipped = outcome.left_out.total()
    console.print(f"{outcome.passed:,} tests passed, {outcome.failed:,} failed, {skipped:,} were left out")


if __name__ == "__main__":
    main()
