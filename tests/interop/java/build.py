"""What Maven fetches and compiles, once: kept in `.cache/kafka`, shared by all test processes."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "kafka"
MAVEN_S = 1_200
"""The limit of a test that may be the first to need it, or wait for who is."""


@functools.cache
def classpath(project: str) -> str:
    """The class path of a Maven project, built by the first process that asks.

    `clients`: the Java clients, and our scenarios. `kafka`: Apache Kafka's server and tools, and what runs the tools.
    `newest_kafka`: the newest server, for our client. `protocol_tests`: Kafka's own tests, and our cluster for them.
    """
    target = built(HERE / project, project)
    return f"{target / 'classes'}:{target / 'dependency'}/*"


def built(folder: Path, name: str) -> Path:
    """What Maven makes of a project, built by the first process that asks: `classes`, and jars in `dependency`."""
    inputs = [folder / "pom.xml", *sorted(folder.rglob("*.java"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:12]
    target = CACHE / f"{name}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            for old in CACHE.glob(f"{name}-*"):
                shutil.rmtree(old)
            building = CACHE / f"{name}-building"
            maven(folder / "pom.xml", building)
            building.rename(target)
    return target


def maven(pom: Path, target: Path) -> None:
    """Compile a project to `target/classes`, with what it depends on in `target/dependency`."""
    command = [
        "mvn", "--batch-mode", "--quiet", f"--file={pom}", "compile", "dependency:copy-dependencies",
        f"-Dtarget={target}", f"-DoutputDirectory={target / 'dependency'}", "-DincludeScope=runtime",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
