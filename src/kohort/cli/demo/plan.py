"""The plan of a run of the demo: how much, how fast, and where files go."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.cli.demo.errors import DemoError

APPLICATION: Final = "flight-delays"
"""The application's id, which is its group's name, as in the program."""

PARTITIONS: Final = 4
"""Partitions of each topic, and so tasks of each subtopology."""

SETTINGS: Final[dict[str, object]] = {
    "group.streams.session.timeout.ms": 6000,
    "group.streams.heartbeat.interval.ms": 1000,
}
"""Settings of the broker: a short session timeout, so that an instance is missed soon (Kafka's default is 45 s)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of `kohort demo`.

    Attributes:
        records: number of flights; None for all of them.
        seconds: duration of their replay.
        directory: for charts and the page; `run` in it is replaced each time.
        cache: for the download.
        port: the broker's; 0 for a free one.
        cores: Spark's cores for each instance.
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
            DemoError: the directory can't be written.
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
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "kohort"


def program() -> Path:
    """The file of the application: docs/examples/flight_delays.py; an installed package has it beside this file.

    Raises:
        DemoError: it is in neither place.
    """
    here = Path(__file__).resolve()
    for candidate in (here.with_name("flight_delays.py"), here.parents[4] / "docs" / "examples" / "flight_delays.py"):
        if candidate.is_file():
            return candidate
    raise DemoError("the program of the demo, flight_delays.py, isn't installed")
