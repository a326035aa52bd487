"""The machine: Python, packages, Java, room, limits, the clock, where Kohort keeps what it can make again."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from kohort import __version__, extras
from kohort.cli.client.java_version import java_version
from kohort.cli.data.progress import in_words
from kohort.cli.diagnosis.finding import Finding, Level

_Machine = partial(Finding, "machine")

_OLDEST_JAVA: Final = 17
_JAVA: Final = (
    "install one (Debian, Ubuntu: apt-get install default-jre-headless), or have JAVA_HOME name its directory"
)
_LITTLE: Final = 2_000_000_000
_NOTHING: Final = 200_000_000
"""Bytes that are left on a disk: fewer are a warning, or wrong."""
_FILES: Final = 4096
"""Open files that a broker, or an application with some stores, may come to."""

_EXTRAS: Final = (
    ("arrow", extras.ARROW, "Arrow tables and batches, CSV and Parquet"),
    ("security", extras.SECURITY, "kohort serve --secure, and tokens"),
    ("console", extras.CONSOLE, "kohort console"),
    ("protobuf", extras.PROTOBUF, "Protobuf in applications"),
    ("spark", extras.SPARK, "streams applications"),
)


def machine_findings() -> Iterator[Finding]:
    """Looks at this machine, as this process sees it."""
    yield _Machine(Level.FINE, f"Kohort {__version__} on Python {platform.python_version()}, {platform.platform()}")
    yield from extras_findings()
    yield from java_findings(os.environ, needed=extras.are_installed(extras.SPARK))
    yield from disk_findings(
        Path(tempfile.gettempdir()), "temporary files, and of applications without state_dir the state"
    )
    yield from limit_findings()
    yield from clock_findings()
    yield from name_findings()
    yield from cache_findings(os.environ)


def extras_findings() -> Iterator[Finding]:
    """Which extras are there, and which in part."""
    there = []
    for name, packages, what in _EXTRAS:
        missing = [each for each in packages if not extras.are_installed([each])]
        if not missing:
            there.append(name)
        elif name == "spark" and "pyspark" not in missing:
            yield _Machine(
                Level.WRONG,
                f"the extra spark is there in part: {', '.join(missing)} can't be imported",
                "Applications need all of it, on the driver and on each executor.",
                "pip install 'kohort[spark]', or from a clone: pip install . ./spark",
            )
        else:
            remedy = f"pip install 'kohort[{name}]' if you want it"
            yield _Machine(Level.NOTE, f"the extra {name} isn't installed: it is for {what}", remedy=remedy)
    yield _Machine(Level.FINE, f"extras that are installed: {', '.join(there) or 'none'}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        streams = version("kohort-spark")
    except PackageNotFoundError:
        return
    if streams != __version__:
        yield _Machine(
            Level.WRONG,
            f"kohort-spark is {streams}, and kohort is {__version__}",
            "They are one program in two packages, and know each other's insides.",
            "install the same version of both",
        )


def java_findings(environment: Mapping[str, str], *, needed: bool) -> Iterator[Finding]:
    """The Java runtime that PySpark would start.

    Args:
        needed: whether applications can be run otherwise, so that a missing one is wrong.
    """
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))
    level, why = (Level.WRONG if needed else Level.NOTE), "Spark runs in a Java virtual machine."
    if java is None:
        yield _Machine(level, "there is no Java", why, _JAVA)
        return
    if home and not os.path.isfile(java):  # noqa: PTH113 (Path's raises where one may not look)
        remedy = "have JAVA_HOME name the directory above bin/java, or unset it: then the java of PATH is taken"
        yield _Machine(level, f"JAVA_HOME={home} has no bin/java", f"{why} It is looked for there alone.", remedy)
        return
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield _Machine(level, f"{java} can't be started: {error}", why, _JAVA)
        return
    version = java_version(done.stderr + done.stdout)
    if version is None or version < _OLDEST_JAVA:
        what = f"{java} is Java {version or 'of an unknown version'}"
        yield _Machine(level, what, f"Spark needs {_OLDEST_JAVA} or newer.", _JAVA)
    else:
        yield _Machine(Level.FINE, f"Java {version}: {java}")


def disk_findings(directory: Path, what: str, about: str = "machine") -> Iterator[Finding]:
    """The room that is left where a directory is, or will be.

    Args:
        what: what is kept there.
    """
    there = existing(directory)
    try:
        free = shutil.disk_usage(there).free
        files = os.statvfs(there)
    except OSError as error:
        yield Finding(about, Level.WRONG, f"{there} can't be looked at: {error.strerror}", f"It is for {what}.")
        return
    if free < _LITTLE:
        level = Level.WRONG if free < _NOTHING else Level.WARNING
        yield Finding(
            about, level, f"{in_words(free)} are left on the disk of {directory}",
            f"It is for {what}; a full disk stops them.", "make room, or name a directory on another disk",
        )  # fmt: skip
    elif files.f_files and files.f_favail < 10_000:
        yield Finding(
            about, Level.WARNING, f"{files.f_favail:,} more files fit on the disk of {directory}",
            "A disk without inodes takes no file more, whatever room there is.", "delete what has many small files",
        )  # fmt: skip
    else:
        yield Finding(about, Level.FINE, f"{in_words(free)} are left on the disk of {directory}")


def limit_findings() -> Iterator[Finding]:
    """How many files a process may have open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    shown = "no limit" if soft == endless else f"{soft:,}"
    why = "A broker has a file for each connection and for each segment, and a store some of its own."
    if soft == endless or soft >= _FILES:
        yield _Machine(Level.FINE, f"open files of a process: {shown}")
    elif hard == endless or hard >= _FILES:
        most = _FILES if hard == endless else hard
        remedy = f"ulimit -n {most} before an application with many stores; kohort serve does it itself"
        yield _Machine(Level.NOTE, f"open files of a process: {shown}", why, remedy)
    else:
        remedy = (
            "raise it: nofile in /etc/security/limits.conf, LimitNOFILE= of a service, --ulimit nofile= of a container"
        )
        yield _Machine(Level.WARNING, f"open files of a process: {shown}, at most {hard:,}", why, remedy)


def clock_findings() -> Iterator[Finding]:
    """A clock that is before the time when Kohort was installed is wrong for sure."""
    installed = Path(extras.__file__).stat().st_mtime
    now = time.time()
    if now < installed - 60:
        says = time.strftime("%Y-%m-%d %H:%M", time.gmtime(now))
        yield _Machine(
            Level.WRONG, f"the clock says {says} UTC, and Kohort was installed later",
            "Records have the time of who sends them: windows, retention and certificates go by it.",
            "set the clock, by a time server (timedatectl set-ntp true)",
        )  # fmt: skip


def name_findings() -> Iterator[Finding]:
    """Spark looks up the machine's own name to find its address."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        yield _Machine(
            Level.WARNING, f"this machine's own name, {name}, has no address",
            "Spark looks it up when it starts, and fails or waits.",
            f"add {name} to /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1",
        )  # fmt: skip


def cache_findings(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Where compiled code and the demo's data are kept, if that can be written."""
    home = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    caches = [(home, "XDG_CACHE_HOME", "downloads, and compiled code")]
    if named := environment.get("NUMBA_CACHE_DIR"):
        caches.append((Path(named), "NUMBA_CACHE_DIR", "compiled code"))
    for directory, variable, what in caches:
        if may_write(directory):
            yield _Machine(Level.FINE, f"{directory} can be written: it is for {what}")
        else:
            yield _Machine(
                Level.WARNING, f"{directory} can't be written: it is for {what}",
                "What is made there is made anew each time, which takes some seconds.",
                f"let this user own it, or have {variable} name another",
            )  # fmt: skip


def existing(directory: Path) -> Path:
    """The directory, or that above it which is there, as far as this user may look."""
    above = (directory, *directory.absolute().parents)
    return next((each for each in above if os.path.exists(each)), Path("/"))  # noqa: PTH110 (Path's raises there)


def may_write(directory: Path) -> bool:
    """Whether a directory can be written, or made."""
    there = existing(directory)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
