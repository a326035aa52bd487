"""Tansu: a broker that isn't Apache's, written in Rust, as a program that comes in a wheel."""

from __future__ import annotations

from pathlib import Path

from .apache_kafka import free_ports, serves_metadata
from .servers import Server
from .toolchains import tansu


class Tansu(Server):
    """One node that keeps its data in memory.

    Args:
        directory: for what it prints; must not be another server's.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.program = tansu()

    def command(self) -> list[str]:
        (self.port,) = free_ports(1)
        address = f"tcp://{self.bootstrap}"
        where = [f"--listener-url={address}", f"--advertised-listener-url={address}"]
        return [str(self.program), "broker", *where, "--storage-engine=memory://tansu/"]

    def ready(self) -> bool:
        return serves_metadata(self.host, self.port)
