"""How tests call the commands that look after a cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kohort.testing.broker import Broker

from .support import invoke

__all__ = ["Cluster", "cluster", "rows"]


class Cluster:
    """A cluster, and the commands on it.

    Attributes:
        servers: where it is.
    """

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def run(self, *arguments: str, stdin: str = "") -> Any:
        """Run a command, such as topics list."""
        return invoke(*arguments, stdin=stdin, servers=self.servers)

    def ok(self, *arguments: str) -> str:
        """Run a command that goes well; what it prints."""
        done = self.run(*arguments)
        assert done.exit_code == 0, done.stderr
        return str(done.stdout)

    def json(self, *arguments: str) -> Any:
        """Run a command that goes well, and read its JSON."""
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, *arguments: str, code: int = 1) -> str:
        """Run a command that fails; what it says about it."""
        done = self.run(*arguments)
        assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
        return " ".join(str(done.stderr).split())


@contextmanager
def cluster(settings: Mapping[str, object] | None = None) -> Iterator[Cluster]:
    """A broker in a thread of its own."""
    with Broker(settings) as broker:
        yield Cluster(broker.bootstrap_servers)


def rows(text: str) -> list[list[str]]:
    """The cells of each line of the tables."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip() and "──" not in line]
