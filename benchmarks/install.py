"""What Kohort's base and its extras take on disk, and how long it is from nothing to a first green test.

make bench-install
python -m benchmarks.install --quick

The peer is what testcontainers does without its image: its own installation, and the start of Apache Kafka's JVM.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.broker.peers import kafka
from tests.environments import EXTRAS, FIRST_TEST, Environment, Wheels
from tests.tools import MAVEN

TESTCONTAINERS: Final = "testcontainers"
UNTIL_IT_ANSWERS: Final = """
import time
from kohort.testing import KohortContainer
began = time.perf_counter()
with KohortContainer():
    print(f"{time.perf_counter() - began:.1f}")
"""
"""What somebody's program waits for who has replaced a container by Kohort's; it prints seconds."""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sizes(wheels: Wheels, directory: Path, extras: tuple[str, ...]) -> Table:
    table = Table(title="Installed")
    for column in ("What", "MB on disk", "packages", "seconds"):
        table.add_column(column, justify="left" if column == "What" else "right")
    for extra in extras:
        environment = Environment(directory / (extra or "base"), wheels)
        taken = seconds(lambda: environment.install_kohort(extra))  # noqa: B023
        packages = len([*environment.packages.glob("*.dist-info")])
        name = f"kohort[{extra}]" if extra else "kohort"
        table.add_row(escape(name), f"{environment.megabytes():,.0f}", str(packages), f"{taken:.0f}")
        environment.remove()
    return table


def first_test(wheels: Wheels, directory: Path) -> Table:
    """Seconds to a first green test in an empty environment: ours, and the parts of testcontainers' way."""
    table = Table(title="To a first green test: seconds")
    table.add_column("Step")
    table.add_column("", justify="right")
    environment = Environment(directory / "first", wheels)
    (directory / "test_first.py").write_text(FIRST_TEST)

    def install() -> None:
        environment.install_kohort()
        environment.install("pytest")

    table.add_row("pip install kohort pytest", f"{seconds(install):.1f}")
    run = lambda: environment.run("pytest", "-q", "test_first.py", directory=directory)  # noqa: E731
    table.add_row("pytest, with the fixture kohort_broker", f"{seconds(run):.1f}")
    table.add_row("pytest, once more", f"{seconds(run):.1f}")
    table.add_row(
        "KohortContainer until it answers", environment.run("python", "-c", UNTIL_IT_ANSWERS).strip(), end_section=True
    )
    environment.remove()

    peer = Environment(directory / "peer")
    table.add_row(
        f"pip install {TESTCONTAINERS} pytest", f"{seconds(lambda: peer.install(TESTCONTAINERS, 'pytest')):.1f}"
    )
    peer.remove()
    table.add_row("the image of Kafka, the first time", "not measured: needs Docker")
    if MAVEN.is_there():
        server = kafka(directory)
        table.add_row("Apache Kafka's JVM until it answers", f"{server.start():.1f}")
        server.stop()
    else:
        table.add_row("Apache Kafka's JVM until it answers", MAVEN.missing)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the base alone: for CI")
    extras = EXTRAS[:1] if parser.parse_args().quick else EXTRAS
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        wheels = Wheels(directory)
        Console().print(sizes(wheels, directory, extras))
        Console().print(first_test(wheels, directory))


if __name__ == "__main__":
    main()
