"""Apicurio Registry, a schema registry that isn't ours: in Java, with Confluent's API, in memory."""

from __future__ import annotations

import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from .apache_kafka import free_ports
from .built_once import built_once
from .java.build import CACHE, HERE, maven
from .servers import Server

POM = HERE / "apicurio" / "pom.xml"


class Apicurio(Server):
    """A registry of its own, without a schema."""

    ready_within = 120.0  # Quarkus takes half a minute on a busy machine
    clean_exit = 143

    @property
    def url(self) -> str:
        """Where Confluent's API is."""
        return f"http://{self.bootstrap}/apis/ccompat/v7"

    def command(self) -> list[str]:
        if not self.port:
            (self.port,) = free_ports(1)
        (jar,) = registry().glob("*-runner.jar")
        flags = ["-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        where = [f"-Dquarkus.http.host={self.host}", f"-Dquarkus.http.port={self.port}"]
        return ["java", *flags, *where, "-jar", str(jar)]

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def registry() -> Path:
    """The folder of the program, which the first process that asks has Maven fetch."""

    def build(target: Path) -> None:
        maven(POM, target)
        (archive,) = (target / "dependency").glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(target, filter="data")
        archive.unlink()

    return built_once(CACHE, "apicurio", [POM.read_bytes()], build)
