"""The plan of a run: how many flights, how fast, and where files are written."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.cli.demo.errors import DemoError

__all__ = ["APPLICATION", "PARTITIONS", "SETTINGS", "Plan", "program"]

APPLICATION: Final = "flight-delays"
"""The application's id, which is its group's; as in the program."""

PARTITIONS: Final = 4
"""The partitions of each topic, and so the tasks of each subtopology."""

SETTINGS: Final[dict[str, object]] = {
    "group.streams.session.timeout.ms": 6000,
    "group.streams.heartbeat.interval.ms": 1000,
}
"""The broker's settings: it notices a dead instance sooner than Kafka, which takes 45 s."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for.

    Attributes:
        records: how many flights; None for all of them.
        seconds: how long their replay takes.
        directory: gets charts and the page; its subdirectory `run` is replaced each time.
        cache: the directory for downloads.
        port: the broker's; 0 for any that is free.
        cores: of Spark, an instance.
        keep: whether broker and the surviving instance stay until Ctrl+C.
    """

    records: int | None
    seconds: float
    directory: Path
    cache: Path
    port: int
    cores: int
    keep: bool

    @property
    def run(self) -> Path:
        """The directory of this run: the broker's data, and state, journals and logs of the instances."""
        return self.directory / "run"

    def prepare(self) -> None:
        """Makes the directories, and removes the files of an earlier run.

        Raises:
            DemoError: that fails.
        """
        try:
            if self.run.exists():
                shutil.rmtree(self.run)
            self.run.mkdir(parents=True)
        except OSError as error:
            raise DemoError(
                f"can't write to {self.directory}: {error.strerror or error}; choose another --directory"
            ) from None


def default_cache() -> Path:
    """The default directory for downloads."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "kohort"


def program() -> Path:
    """The file of the application: docs/examples/flight_delays.py; an installed package has it beside this file.

    Raises:
        DemoError: it doesn't exist.
    """
    here = Path(__file__).resolve()
    for candidate in (here.with_name("flight_delays.py"), here.parents[4] / "docs" / "examples" / "flight_delays.py"):
        if candidate.is_file():
            return candidate
    raise DemoError("the program of the demo, flight_delays.py, isn't installed")
