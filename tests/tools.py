"""The programs beside Python that tests and benchmarks drive: which are missing, who needs them, and what brings them.

python -m tests.tools java kcat maven    # installs those of them that are missing, where we may
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kohort.cli.demo.errors import DemoError
from kohort.cli.demo.java import check_java

INSTALL: Final = Path(__file__).parents[1] / "scripts" / "install"


@dataclass(frozen=True)
class Tool:
    """What isn't on every machine.

    Attributes:
        title: for people.
        used_for: by whom it is needed.
        packages: of Debian, by names that 12 and 13 both have.
        is_there: whether it can be used.
    """

    title: str
    used_for: str
    packages: tuple[str, ...]
    is_there: Callable[[], bool]

    @property
    def remedy(self) -> str:
        """The command that brings it."""
        return f"apt-get install {' '.join(self.packages)}"

    @property
    def missing(self) -> str:
        """Says in a sentence that it is missing."""
        return f"{self.title} is missing, {self.used_for}: run '{self.remedy}' as root"

    def require(self) -> None:
        """Skip the running test on a machine without it; with CI=1 the test fails: there, all of them shall be."""
        if not self.is_there():
            if os.environ.get("CI"):
                pytest.fail(self.missing, pytrace=False)
            pytest.skip(self.missing)


def on_path(*commands: str) -> Callable[[], bool]:
    """Whether there are all of these commands."""
    return lambda: all(map(shutil.which, commands))


@functools.cache
def spark_can_start() -> bool:
    """Whether there is a Java that PySpark would find, and new enough."""
    try:
        check_java()
    except DemoError:
        return False
    return True


def maven_can_compile() -> bool:
    """Whether there is Maven with a JDK, which it takes from JAVA_HOME if that is set."""
    home = os.environ.get("JAVA_HOME")
    return on_path("mvn", "javac", "java")() and (not home or Path(home, "bin", "javac").exists())


JAVA: Final = Tool("Java 17 or newer", "which Spark runs on", ("default-jre-headless",), spark_can_start)
KCAT: Final = Tool("kcat", "a client that the broker is tested with", ("kcat",), on_path("kcat"))
MAVEN: Final = Tool(
    "Maven with a JDK",
    "which brings Apache Kafka and its clients to compare with",
    ("maven", "default-jdk-headless"),
    maven_can_compile,
)
DEBOOTSTRAP: Final = Tool(
    "debootstrap", "which makes the empty roots of make test-fresh", ("debootstrap",), on_path("debootstrap")
)
CHROMIUM: Final = Tool("Chromium", "in which pages of the console are tried", ("chromium",), on_path("chromium"))
SYSTEMD: Final = Tool("systemd-analyze", "which reads units as systemd does", ("systemd",), on_path("systemd-analyze"))
PODMAN: Final = Tool(
    "podman", "which builds and runs the images of deploy/docker", ("podman", "crun"), on_path("podman", "crun")
)
TOOLS: Final = {
    "java": JAVA,
    "kcat": KCAT,
    "maven": MAVEN,
    "debootstrap": DEBOOTSTRAP,
    "chromium": CHROMIUM,
    "systemd": SYSTEMD,
    "podman": PODMAN,
}


def need(*tools: Tool) -> None:
    """End the program with a sentence for each that is missing; for benchmarks.

    Raises:
        SystemExit: one is missing.
    """
    if missing := [tool.missing for tool in tools if not tool.is_there()]:
        sys.exit("\n".join(missing))


def install(tools: Iterable[Tool]) -> None:
    """Install what is missing, where we may; else it is said what to run."""
    missing = [tool for tool in tools if not tool.is_there()]
    home = os.environ.get("JAVA_HOME")
    if home and JAVA in missing:  # no package can help
        sys.stderr.write(f"setup: JAVA_HOME={home} has no Java 17 or newer: point it at one, or unset it.\n")
        missing = [tool for tool in missing if tool not in (JAVA, MAVEN)]
    if missing:
        why = "; ".join(f"{tool.title}, {tool.used_for}" for tool in missing)
        packages = dict.fromkeys(package for tool in missing for package in tool.packages)
        subprocess.run([INSTALL, why, *packages], check=False)
        spark_can_start.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools", description="Installs what is missing, where we may."
    )
    parser.add_argument("tools", nargs="+", choices=TOOLS)
    install(TOOLS[name] for name in parser.parse_args().tools)


if __name__ == "__main__":
    main()
