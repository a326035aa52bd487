"""`make demo` and `make test` on fresh machines: empty roots of Debian 12 and 13.

    make test-fresh
    make test-fresh FRESH="--systems trixie --runs test --tests 'tests/client tests/interop/test_kcat.py'"

Each run is in a root of its own that has git, make, ca-certificates and python3, and in a clone of what is committed
here. Mirrors, proxies, certificates and pip's settings are this machine's. What debootstrap makes is kept, for all
clones: in kohort/fresh of XDG_CACHE_HOME, or of ~/.cache.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests import left_out
from tests.fresh.machine import Machine, MirrorError, this_machine
from tests.fresh.roots import RELEASES, Release, Root, RootError, enough_space
from tests.tools import DEBOOTSTRAP, install

REPOSITORY: Final = Path(__file__).parents[2]
WORK: Final = REPOSITORY / ".cache" / "fresh"
GIGABYTES: Final = 10
"""That a run may need."""
RUNS: Final = {
    "demo": ("make demo", "root"),
    "test": ("make test", "root"),
    "user": ("make test", Root.USER),
    "both": ("make demo test", "root"),
}
USUAL: Final = ["demo", "test", "user"]
SAID: Final = {"make demo": re.compile(r"the console shows all that happens: http://\S+/group\?id=\S+$", re.MULTILINE)}
"""What a command's output has in it."""
TABLE_OF_MISSING: Final = re.compile(r"^ *Tests that were left out *\n(?:[┏┃┡│└├╇].*\n)+", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """What came of a run."""

    title: str
    python: str
    command: str
    user: str
    seconds: float
    code: int
    outcome: left_out.Outcome | None
    log: Path
    missing: str = ""
    silent: bool = False

    @property
    def is_good(self) -> bool:
        """Root installs what is missing, so that nothing is left out; and all is said that should be."""
        complete = self.user != "root" or self.outcome is None or not self.outcome.left_out
        return self.code == 0 and complete and not self.silent

    @property
    def who(self) -> str:
        """Root, or not."""
        return "root" if self.user == "root" else "a user"

    def row(self) -> tuple[str, ...]:
        """Of the table."""
        minutes, seconds = divmod(round(self.seconds), 60)
        counts = ("", "", "")
        if self.outcome:
            found = self.outcome
            counts = (f"{found.passed:,}", f"{found.failed:,}", f"{found.left_out.total():,}")
        wrong = "said no address of the console" if self.silent else "left tests out"
        said = "good" if self.is_good else f"exit code {self.code}" if self.code else wrong
        return (self.title, self.python, self.command, self.who, f"{minutes}:{seconds:02}", *counts, said)


def carry_out(
    release: Release, name: str, tests: str, machine: Machine, keep: bool, say: Callable[[str], None]
) -> Finding:
    """One run, in a root of its own."""
    command, user = RUNS[name]
    log = WORK / "logs" / f"{release.codename}-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    say(f"{release.title}: {command} as {user}: {log.relative_to(REPOSITORY)}")
    root = Root(WORK / f"{release.codename}-{name}", release, machine, log)
    try:
        root.make()
        clone = root.clone(REPOSITORY, user)
        if user != "root":
            # Without it there is no pip, and a user can't get it: the sentence that says so is kept in the log.
            root.run("cd kohort && make test", user)
            root.must(f"cd {root.home(user)}/kohort && scripts/install 'the venv module of python3' python3-venv")
        full = command + (f" TESTS={shlex.quote(tests)}" if command.endswith(" test") and tests else "")
        started = time.monotonic()
        code = root.run(f"cd kohort && exec {full}", user)
        seconds = time.monotonic() - started
        reports = sorted((clone / ".cache" / "test").glob("*.xml"))
        python = python_of(clone)
        outcome = left_out.read(reports) if reports else None
    finally:
        if not keep:
            root.remove()
    if keep:
        say(f"kept: {root.directory}")
    output = log.read_text(errors="replace")
    shown = TABLE_OF_MISSING.search(output)
    silent = is_silent(command, output)
    return Finding(release.title, python, command, user, seconds, code, outcome, log, shown[0] if shown else "", silent)


def is_silent(command: str, output: str) -> bool:
    """Whether the output lacks what the command should say: the demo, where the console is."""
    return any(command.startswith(of) and not said.search(output) for of, said in SAID.items())


def python_of(clone: Path) -> str:
    """The version of the virtual environment's Python; nothing if there is none."""
    try:
        settings = (clone / ".venv" / "pyvenv.cfg").read_text()
    except FileNotFoundError:
        return ""
    found = re.search(r"^version = (\S+)", settings, re.MULTILINE)
    return found[1] if found else ""


def table(findings: list[Finding]) -> Table:
    """A row a run."""
    shown = Table(title="Fresh machines: git, make, ca-certificates, python3, and a clone")
    for column in ("System", "Python", "Command", "Who", "Time", "Passed", "Failed", "Left out", "Outcome"):
        shown.add_column(column, justify="right" if column in ("Time", "Passed", "Failed", "Left out") else "left")
    for finding in findings:
        shown.add_row(*finding.row())
    return shown


def able_machine() -> Machine:
    """This machine, on which roots can be made.

    Raises:
        MirrorError, RootError: they can't; says why in a sentence.
    """
    if os.geteuid() != 0:
        raise RootError(
            "make test-fresh needs root, to make roots with debootstrap and to enter them: run 'sudo make test-fresh'."
        )
    install([DEBOOTSTRAP])
    if not DEBOOTSTRAP.is_there():
        raise RootError(f"{DEBOOTSTRAP.missing}.")
    if not can_mount():
        raise RootError("make test-fresh mounts /proc, /dev and /sys in its roots, which this machine's root may not.")
    WORK.mkdir(parents=True, exist_ok=True)
    if not enough_space(WORK, GIGABYTES):
        raise RootError(f"make test-fresh needs {GIGABYTES} GB of disk space at {WORK}.")
    return this_machine()


def can_mount() -> bool:
    """Containers seldom may."""
    command = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "proc", "proc", "/proc"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def here(command: str) -> int:
    """Runs it on this machine, and passes on what it says; its exit code, or 1 if it doesn't say what it should."""
    lines: list[str] = []
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    if process.returncode == 0 and is_silent(command, "".join(lines)):
        sys.stdout.write("It hasn't said where the console is.\n")
        return 1
    return process.returncode


def main() -> int:
    """Run all that is asked for; 1 if a command failed, or as root left tests out."""
    parser = argparse.ArgumentParser(prog="python -m tests.fresh", description=__doc__.partition("\n")[0])
    names = {release.codename: release for release in RELEASES}
    parser.add_argument("--systems", nargs="+", choices=names, default=list(names), help="which releases of Debian")
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=USUAL, help="user: without root; both: in one root")
    parser.add_argument("--tests", default="", help="a selection for make test, such as 'tests/client tests/faults'")
    parser.add_argument("--keep", action="store_true", help="leave the roots in .cache/fresh")
    parser.add_argument("--otherwise", help="a command to run here where roots can't be made, such as 'make demo'")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind
    console = Console(width=None if Console().is_terminal else 140)
    try:
        machine = able_machine()
    except (MirrorError, RootError) as error:
        console.print(str(error), soft_wrap=True)
        return here(options.otherwise) if options.otherwise else 1
    findings: list[Finding] = []
    try:
        for system in options.systems:
            for run in options.runs:
                finding = carry_out(names[system], run, options.tests, machine, options.keep, console.print)
                findings.append(finding)
                console.print(f"  {' '.join(filter(None, finding.row()[4:]))}")
    except (RootError, subprocess.CalledProcessError) as error:
        console.print(str(error), soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    finally:
        if findings:
            console.print(table(findings))
            for finding in findings:
                if finding.missing:
                    console.print(f"\n{finding.title}, {finding.command} as {finding.who}:")
                    console.print(finding.missing, markup=False, highlight=False)
    return 0 if all(finding.is_good for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
