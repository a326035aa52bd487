"""Makes the archive of Spark's classes: `kohort apps class-archive`.

    python -m kohort.spark.testing.class_training FILE

runs small programs in a session whose JVM writes the classes that it has loaded to FILE when it ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from kohort.spark.class_archive import archive_path, option
from kohort.spark.errors import ApplicationError

_SECONDS: Final = 600
_JAVA_S: Final = 120
"""How long Java may take to write and to end when Python is killed."""
_UNUSED_S: Final = 90 * 86_400
_ROWS: Final = [
    {"carrier": "AA", "delay": 12.0, "at": "2013-01-01T05:00:00Z"},
    {"carrier": "UA", "delay": 3.0, "at": "2013-01-01T06:30:00Z"},
]


def make_archive() -> Path:
    """Makes the archive of this Java and this Spark, which takes about half a minute, or replaces it; says where it is.

    Sessions that run meanwhile, or use an earlier one, aren't disturbed. Archives that nothing has used for 90 days, as
    those of a Java that was replaced, are removed, and so is what is left of one that wasn't finished.

    Raises:
        ApplicationError: it can't be made; says why.
    """
    path = archive_path()
    if path is None:
        raise ApplicationError(
            "there is no Java whose version is known: JAVA_HOME or java on the PATH should lead to one with a file "
            "'release', version 17 or newer"
        )
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _tidy(path.parent, "*.part", 2 * _SECONDS)
        said = _train(unfinished)
        if not _is_complete(unfinished):
            raise ApplicationError(f"the JVM wrote no archive. It said:\n{said.strip()}")
        unfinished.replace(path)
        _tidy(path.parent, "*.jsa", _UNUSED_S)
    except OSError as error:
        raise ApplicationError(f"can't write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return path


def _train(path: Path) -> str:
    """Has the programs run in a process of their own, and waits until its JVM, too, has ended; what they said."""
    command = [sys.executable, "-W", "ignore", "-m", "kohort.spark.testing.class_training", str(path)]
    # Java writes the archive after Python has ended. It has this pipe, too: when that is closed, both have.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    try:
        said, _ = process.communicate(timeout=_SECONDS)
    except BaseException as error:
        process.kill()
        process.wait()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_JAVA_S)
        if isinstance(error, subprocess.TimeoutExpired):
            raise ApplicationError(f"the session in which it is made hasn't ended after {_SECONDS} s") from None
        raise
    if process.returncode:
        raise ApplicationError(f"the session in which it is made failed. It said:\n{said.strip()[-2000:]}")
    return said


def _tidy(directory: Path, pattern: str, seconds: float) -> None:
    """Removes what nobody has read or written for so long."""
    for file in directory.glob(pattern):
        with contextlib.suppress(OSError):
            state = file.stat()
            if max(state.st_atime, state.st_mtime) < time.time() - seconds:
                file.unlink()


def _is_complete(path: Path) -> bool:
    """Whether an archive is whole: a JVM writes what it begins with last."""
    return path.is_file() and path.read_bytes()[:4].strip(b"\0") != b""


def _run(path: Path) -> None:
    from kohort.spark.testing.session import local_session

    session = local_session(jvm=f"{option('ArchiveClassesAtExit', path)} -Xlog:cds=error -Xlog:cds+dynamic=error")
    session.range(4).selectExpr("id % 2 AS k").groupBy("k").count().collect()
    for program in (_rows, _windows, _function, _join):
        _pipe(program)
    session.stop()


def _pipe(program: Any) -> None:
    from kohort.spark import StreamsApp
    from kohort.spark.testing.driver import TestDriver

    app = StreamsApp(f"classes{program.__name__.replace('_', '-')}", bootstrap_servers="127.0.0.1:1")
    flights = app.stream("flights", schema="carrier STRING, delay DOUBLE, at TIMESTAMP", key="carrier", event_time="at")
    program(app, flights).to("out")
    with TestDriver(app) as driver:
        for _ in range(2):
            driver.pipe("flights", _ROWS)


def _rows(_: Any, flights: Any) -> Any:
    return flights.where("delay > 5").with_columns(late="delay > 60")


def _windows(_: Any, flights: Any) -> Any:
    from kohort.spark import approx_percentile, avg, count, window

    grouped = flights.group_by("carrier", window("at", "1 hour", grace="1 hour"))
    return grouped.aggregate("delays", n=count(), mean=avg("delay"), median=approx_percentile("delay", 0.5))


def _function(_: Any, flights: Any) -> Any:
    from kohort.spark import value_state

    states = {"last": value_state("delay DOUBLE")}
    return flights.group_by("carrier").process("last", _keep, output="carrier STRING, delay DOUBLE", states=states)


def _keep(flights: Any, state: Any) -> Any:
    state["last"].put(flights.select(["carrier", "delay"]))
    return flights.select(["carrier", "delay"])


def _join(app: Any, flights: Any) -> Any:
    return flights.join(app.table("airlines", schema="carrier STRING, name STRING", key="carrier"), "carrier")


if __name__ == "__main__":
    _run(Path(sys.argv[1]))
