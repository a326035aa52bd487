"""Empty roots of Debian, made once by debootstrap, and copied for each run.

What runs in a root has mounts and processes of its own (`unshare`): whatever ends it, nothing stays mounted or running.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fresh.machine import Machine

PACKAGES: Final = ("git", "make", "ca-certificates", "python3")
"""What a fresh machine has, and nothing else."""
ALONE: Final = (
    "setpriv", "--pdeathsig", "KILL",
    "unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
)  # fmt: skip
"""Starts a command with mounts and processes of its own, which end with it, and with us."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class RootError(Exception):
    """A root couldn't be made; says why."""


@dataclass(frozen=True)
class Release:
    """Of Debian, and the Python that it has."""

    codename: str
    title: str
    python: str


RELEASES: Final = (Release("bookworm", "Debian 12", "3.11"), Release("trixie", "Debian 13", "3.13"))


def cache() -> Path:
    """Where the roots are kept that others are copied from, for all clones."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kohort" / "fresh"


def base(release: Release, machine: Machine, log: Path) -> Path:
    """The root of a release, as debootstrap makes it: made if it isn't there.

    Raises:
        RootError: debootstrap failed.
    """
    target = cache() / release.codename
    if not target.exists():
        building = target.with_suffix(".building")
        remove(building)
        building.parent.mkdir(parents=True, exist_ok=True)
        command = [
            *ALONE, "debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}",
            f"--keyring={machine.keyring}", release.codename, str(building), machine.mirror,
        ]  # fmt: skip
        if code := run_logged(command, log, dict(os.environ)):
            remove(building)
            raise RootError(f"debootstrap of {release.title} ended with {code}: see {log}")
        building.rename(target)
    return target


class Root:
    """A copy of a base, with the machine's settings and a user who may do nothing special.

    Args:
        directory: where it shall be.
        release: of Debian.
        machine: whose settings it gets.
        log: a file; what runs in it writes there.
    """

    USER: Final = "kohort"

    def __init__(self, directory: Path, release: Release, machine: Machine, log: Path) -> None:
        self.directory, self.release, self.machine, self.log = directory, release, machine, log

    def make(self) -> None:
        """Make it, anew if it is there.

        Raises:
            RootError: it can't be made.
        """
        remove(self.directory)
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        made = base(self.release, self.machine, self.log)
        subprocess.run(["cp", "-a", "--reflink=auto", made, self.directory], check=True)
        self.must(f"useradd --create-home --shell /bin/sh {self.USER}")
        self.machine.give(self.directory, self.release.codename, [self.home("root"), self.home(self.USER)])
        self.must("update-ca-certificates")

    def home(self, user: str) -> Path:
        """A user's directory."""
        return Path("/root") if user == "root" else Path("/home", user)

    def clone(self, repository: Path, user: str) -> Path:
        """Clone what was committed into the user's home; the path of the clone, as seen from outside."""
        target = self.directory / self.home(user).relative_to("/") / "kohort"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", repository, target], check=True)
        self.must(f"chown -R {user}: {self.home(user)}")
        return target

    def must(self, script: str) -> None:
        """Run a script as root.

        Raises:
            RootError: it failed.
        """
        if code := self.run(script):
            raise RootError(f"'{script}' ended with {code}: see {self.log}")

    def run(self, script: str, user: str = "root") -> int:
        """Run a script as a user, in the user's home; its exit code."""
        here = shlex.quote(str(self.directory))
        home = str(self.home(user))
        environment = {**self.machine.environment, "HOME": home, "USER": user, "PATH": PATH}
        variables = [f"{name}={value}" for name, value in environment.items()]
        inside = ["/usr/bin/env", "-i", *variables, "/bin/sh", "-c", f"cd; {script}"]
        # The shell stays, as the first process of its own: another user's wouldn't be killed together with us.
        enter = (
            f"mount --bind {here} {here} && mount --rbind /dev {here}/dev && mount --rbind /sys {here}/sys && "
            f"mount -t proc proc {here}/proc && "
            f"{shlex.join(['chroot', f'--userspec={user}:', str(self.directory), *inside])}; exit $?"
        )
        return run_logged([*ALONE, "/bin/sh", "-c", enter], self.log, {"PATH": PATH})

    def remove(self) -> None:
        """Throw it away."""
        remove(self.directory)


def run_logged(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
    """Run a command, whose output goes to the end of the log; its exit code. It doesn't outlive us."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)  # takes all with it that it started
                process.wait()


def remove(directory: Path) -> None:
    """Remove a tree, but nothing that something else is mounted on.

    Raises:
        RootError: something keeps it.
    """
    for _ in range(20):
        if not directory.exists():
            return
        subprocess.run(["rm", "-rf", "--one-file-system", directory], stderr=subprocess.DEVNULL, check=False)
        if directory.exists():
            time.sleep(0.5)  # processes that were killed are still about to end
    raise RootError(f"can't remove {directory}")


def enough_space(directory: Path, gigabytes: float) -> bool:
    """Whether so much is free."""
    return shutil.disk_usage(directory).free > gigabytes * 1e9
