"""Every target of the Makefile that CI doesn't run otherwise, once and in small, so that none rots: `make smoke`.

    make smoke SMOKE="bench-wire dist"
    make smoke SHARE=1/2

A target has to succeed and to print what is asked for, or, where a program is missing, to say so without a traceback.
With CI=1 nothing may be missing.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from rich.console import Console

from tests.shares import WHOLE, share
from tests.tools import JAVA, KCAT, MAVEN, Tool

ROOT: Final = Path(__file__).parents[1]
LIMIT: Final = 1_800
"""Seconds that a target may take: what takes minutes beside other work must end, and be judged by what it says."""
PATIENCE: Final = 60
"""Seconds to clean up in, after that."""
JVM: Final = "-XX:TieredStopAtLevel=1"
"""What runs for seconds isn't worth the second compiler's time."""


@dataclass(frozen=True)
class Smoke:
    """A target in small.

    Attributes:
        prints: a pattern that its output has.
        options: variables of make.
        needs: programs that it says it misses.
        codes: exit codes that are good.
    """

    prints: str
    options: tuple[str, ...] = ()
    needs: tuple[Tool, ...] = ()
    codes: tuple[int, ...] = (0,)


SMOKES: Final = {
    "help": Smoke("make bench-wire"),
    "setup": Smoke(""),
    "tour": Smoke("StreamsGroupHeartbeat"),
    "format": Smoke(""),
    "simulate": Smoke("streams: .* in", ("SEEDS=2", "LARGE=small")),
    "availability": Smoke("scale out"),
    # Its table says more than a machine with other work can keep: that a task doesn't move without a warm-up.
    "scale": Smoke("stream and batch are equal", codes=(0, 2)),
    "bench-wire": Smoke("Compression", ("BENCH=--quick",)),
    "bench-json": Smoke("bids", ("BENCH=--quick",)),
    "bench-console": Smoke("memory: ", ("BENCH=--quick",)),
    "bench-startup": Smoke("kohort --version", ("BENCH=--quick",)),
    "bench-install": Smoke("once more", ("BENCH=--quick",)),
    "bench-broker": Smoke("ready", ("BENCH=--quick",), (KCAT, MAVEN)),
    "bench-placement": Smoke("Kafka's sticky", ("BENCH=--quick --standbys 0 --per-process 1",), (MAVEN,)),
    "bench-heartbeats": Smoke("consumer, 32 at a time", ("BENCH=--quick",)),
    "bench-isolation": Smoke("beside", ("BENCH=--quick",)),
    "bench-groups": Smoke("a third joins two", ("BENCH=--quick",), (MAVEN,)),
    "bench-client": Smoke("Clients with Kohort", ("BENCH=--quick --broker kohort",)),
    "bench-pipeline": Smoke("Bids by auction", ("BENCH=--quick --case flights auctions",), (JAVA,)),
    "bench-nexmark": Smoke("equal to the batch", ("BENCH=--quick",), (JAVA,)),
    "bench-processors": Smoke("the keys a second", ("BENCH=--quick",), (JAVA,)),
    "bench-versions": Smoke("versions of a key", ("BENCH=--quick",)),
    "bench-test-driver": Smoke("Later ones take", ("BENCH=--quick",), (JAVA,)),
    "bench-queues": Smoke("one of two killed", ("BENCH=--quick",), (JAVA,)),
    "bench-restore": Smoke("records/s", ("BENCH=--quick",), (JAVA,)),
    "bench-memory": Smoke("driver's Python", ("BENCH=--quick",), (JAVA, MAVEN)),
    "bench-driver": Smoke("prior values", ("BENCH=--quick",)),
    "dist": Smoke("kohort-.*\\.whl", ("DIST=--alone",)),
}
ELSEWHERE: Final = {
    "demo": "CI runs it, in a fresh root if it can",
    "test": "CI runs it",
    "test-long": "CI runs half of it",
    "test-fresh": "CI runs a part of it",
    "test-images": "it builds for some four minutes: for those who change deploy/, and before a release",
    "lint": "CI runs it",
    "types": "CI runs it",
    "chaos": "CI runs a few of its rounds",
    "cluster": "CI runs it",
    "bench": "all the bench-…",
    "smoke": "this is it",
    "docs": "CI runs it",
    "links": "it asks servers on the Internet, which isn't everywhere; tests/test_links.py has one of its own",
    "docs-serve": "it serves until it is stopped",
    "clean": "would remove what the others need",
}
"""Targets that aren't run here, and why not."""


def targets(makefile: Path = ROOT / "Makefile") -> set[str]:
    """Those of `make help`."""
    return set(re.findall(r"^([a-z-]+):.*##", makefile.read_text(), re.MULTILINE))


def areas(makefile: Path = ROOT / "Makefile") -> dict[str, list[str]]:
    """What `make test-AREA` runs, by area: folders, and patterns of files."""
    found = re.findall(r"^AREA_([a-z]+) := (.*?) ## ", makefile.read_text(), re.MULTILINE)
    return {area: folders.split() for area, folders in found}


def run_target(target: str, output: IO[bytes]) -> int:
    """Make it; its exit code. What it started doesn't outlive it."""
    command = ["make", "--no-print-directory", target, *SMOKES[target].options]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {JVM}".strip()},
    )  # fmt: skip
    try:
        return process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return -1
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def judge(smoke: Smoke, code: int, said: str) -> str:
    """What was wrong, or nothing."""
    if "Traceback (most recent call last)" in said:
        return "a traceback"
    missing = [tool.missing for tool in smoke.needs if not tool.is_there()]
    if missing and not os.environ.get("CI"):
        return "" if all(sentence in said for sentence in missing) else "it doesn't say what is missing"
    if code == -1:
        return f"it took longer than {LIMIT} s"
    if code not in smoke.codes:
        return f"exit code {code}"
    return "" if re.search(smoke.prints, said) else f"no '{smoke.prints}' in its output"


def main() -> int:
    """Run what is asked for; 1 if something was wrong, 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m tests.smoke", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default all")
    parser.add_argument(
        "--share", type=share, default=WHOLE, metavar="K/N", help="every N-th of them, from the K-th on"
    )
    options = parser.parse_args()
    if unknown := set(options.targets) - set(SMOKES):
        parser.error(f"no such target here: {', '.join(sorted(unknown))}")
    if not (mine := options.share.of(options.targets or list(SMOKES))):
        parser.error(f"nothing is in share {options.share.number}/{options.share.shares}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run_all(mine, Console(soft_wrap=True))
    except KeyboardInterrupt:
        return 130


def run_all(targets: Iterable[str], console: Console) -> int:
    """Run targets and tell what was wrong; 1 if something was."""
    bad = []
    for target in targets:
        with tempfile.TemporaryFile() as output:
            began = time.monotonic()
            code = run_target(target, output)
            seconds = time.monotonic() - began
            output.seek(0)
            said = output.read().decode(errors="replace")
        wrong = judge(SMOKES[target], code, said)
        console.print(
            f"{seconds:4.0f} s  make {target}: {wrong or 'good'}", style="red" if wrong else "", highlight=False
        )
        if wrong:
            bad.append(target)
            console.print(said[-8000:], markup=False, highlight=False, soft_wrap=True)
    if bad:
        console.print(f"failed: {', '.join(bad)}", style="red")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
