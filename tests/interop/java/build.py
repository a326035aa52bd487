"""What Maven fetches and compiles, once: kept in `.cache/kafka`, shared by all test processes."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from .. import built_once as once
from ..built_once import built_once

HERE = Path(__file__).parent
CACHE = once.CACHE / "kafka"
MAVEN_S = 1_200
"""The limit of a test that may be the first to need it, or wait for who is."""


@functools.cache
def classpath(project: str) -> str:
    """The class path of a Maven project, built by the first process that asks.

    `clients`: the Java clients, and our scenarios. `kafka`: Apache Kafka's server and tools, and what runs the tools.
    `newest_kafka`: the newest server, for our client. `protocol_tests`: Kafka's own tests, and our cluster for them.
    `witness`: Kafka Streams without a server.
    """
    target = built(HERE / project, project)
    return f"{target / 'classes'}:{target / 'dependency'}/*"


def built(folder: Path, name: str) -> Path:
    """What Maven makes of a project, once: `classes`, and jars in `dependency`."""
    inputs = [folder / "pom.xml", *sorted(folder.rglob("*.java"))]
    return built_once(
        CACHE, name, (path.read_bytes() for path in inputs), lambda target: maven(folder / "pom.xml", target)
    )


def maven(pom: Path, target: Path) -> None:
    """Compile a project to `target/classes`, with what it depends on in `target/dependency`."""
    command = [
        "mvn", "--batch-mode", "--quiet", f"--file={pom}", "compile", "dependency:copy-dependencies",
        f"-Dtarget={target}", f"-DoutputDirectory={target / 'dependency'}", "-DincludeScope=runtime",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
