"""kfake, franz-go's broker for tests: one that isn't Apache's, in Go, with classic groups and transactions."""

from __future__ import annotations

from pathlib import Path

from .apache_kafka import free_ports
from .servers import Server
from .toolchains import kfake


class Kfake(Server):
    """One node that keeps its data on disk.

    Args:
        directory: for its data and what it prints; must not be another server's.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.program = kfake()

    def command(self) -> list[str]:
        if not self.port:
            (self.port,) = free_ports(1)
        return [str(self.program), str(self.port), str(self.data_dir)]

    def ready(self) -> bool:
        return self.said.read_text().endswith("\n")
