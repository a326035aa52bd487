"""Builds the images of `deploy/docker` and runs them in containers: `python -m tests.deploy.images`.

    python -m tests.deploy.images [--keep]

No registry is asked for the base: an image of the same name is made of Debian's packages, and every line of the
Dockerfiles is carried out on it by podman, which needs root but no daemon. Then the broker's image serves, keeps its
data over a restart, and ends by SIGTERM; the application's, with a program as its first lines say and under the chart's
restrictions, comes to a result.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fresh.__main__ import can_mount
from tests.fresh.machine import Machine, MirrorError, this_machine
from tests.fresh.roots import ALONE, PATH, RELEASES, Root, RootError, cache, enough_space, remove
from tests.tools import DEBOOTSTRAP, PODMAN, install

REPOSITORY: Final = Path(__file__).parents[2]
DOCKER: Final = REPOSITORY / "deploy" / "docker"
WORK: Final = REPOSITORY / ".cache" / "images"
GIGABYTES: Final = 10
INSIDE: Final = "--inside"
STARTS_S: Final = 120
STOPS_S: Final = 60
PACKAGES: Final = ("python3-venv", "python-is-python3")
"""What Debian's base lacks beside the image of Python's that the Dockerfiles name."""
PROGRAM: Final = """\
import os

from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, count

app = StreamsApp(
    "words",
    bootstrap_servers=os.environ["BOOTSTRAP_SERVERS"],
    group_instance_id=os.environ["GROUP_INSTANCE_ID"],
    session_timeout_ms=int(os.environ["SESSION_TIMEOUT_MS"]),
    application_server=os.environ["APPLICATION_SERVER"],
    state_dir=os.environ["STATE_DIR"],
)
app.stream("words", schema="word STRING", key="word").group_by("word").aggregate("n", n=count()).to("counts")
app.run(SparkSession.builder.master("local[1]").getOrCreate())
"""
AS_IN_THE_CHART: Final = (
    "--read-only", "--read-only-tmpfs=false", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges",
    "--volume=state:/var/lib/kohort",
)  # fmt: skip
"""The restrictions of the chart's pods, and what they may write to."""


class ImageError(Exception):
    """An image can't be built, or doesn't do what it should; says what."""


def base_of(file: Path) -> str:
    """The image that both stages of a Dockerfile begin with."""
    (found,) = set(re.findall(r"^FROM (\S+:\S+)", file.read_text(), re.MULTILINE))
    return found


class Podman:
    """Images and containers that are nobody else's."""

    def __init__(self, directory: Path) -> None:
        self._store = ["--root", str(directory / "store"), "--runroot", str(directory / "run")]
        # Cgroups and systemd's timers are of a whole machine: neither limits nor intervals are tried.
        self._store += ["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "file"]
        kinds = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        most = {name: resource.getrlimit(kind)[1] for name, kind in kinds.items()}
        limits = [f"--ulimit={name}={each}" for name, each in most.items() if each != resource.RLIM_INFINITY]
        self._apart = ["--cgroups=disabled", "--health-interval=disable", *limits]

    def __call__(self, *arguments: str | Path, given: str = "", within: float = 600) -> str:
        """What a command prints.

        Raises:
            ImageError: it failed, or took longer.
        """
        code, output = self.tried(*arguments, given=given, within=within)
        if code:
            raise ImageError(f"podman {shlex.join(map(str, arguments))} ended with {code}:\n{output}")
        return output

    def tried(self, *arguments: str | Path, given: str = "", within: float = 600) -> tuple[int, str]:
        """A command's exit code, and what it prints: its errors, if it failed."""
        command = ["podman", "--log-level=fatal", *self._store, *arguments]
        try:
            ran = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=within)
        except subprocess.TimeoutExpired as error:
            raise ImageError(f"podman {shlex.join(map(str, arguments))} took more than {within:.0f} s") from error
        return ran.returncode, ran.stdout + (ran.stderr if ran.returncode else "")

    def logs(self, name: str) -> str:
        """What a container has said, also on standard error, as far as podman can tell."""
        command = ["podman", "--log-level=fatal", *self._store, "logs", name]
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return told.stdout

    def make_base(self, root: Path, name: str) -> None:
        """An image of a directory.

        Raises:
            ImageError: it can't be read, or taken in.
        """
        left = ["--exclude=./var/cache/apt/archives/*.deb", "--exclude=./var/lib/apt/lists/*"]
        with subprocess.Popen(["tar", "-C", root, "-c", *left, "."], stdout=subprocess.PIPE) as packed:
            command = ["podman", *self._store, "import", "--quiet", f"--change=ENV PATH={PATH}", "-", name]
            taken = subprocess.run(command, stdin=packed.stdout, stdout=subprocess.DEVNULL, check=False).returncode
        if taken or packed.returncode:
            raise ImageError(f"no image of {root}: tar ended with {packed.returncode}, podman import with {taken}")

    def build(self, name: str, file: Path, context: Path) -> None:
        """An image of a Dockerfile, all of it: nothing is taken from an earlier time or a registry."""
        # With Docker's format, which knows health checks. What a build runs has the network of this machine.
        how = ["--isolation=chroot", "--network=host", "--format=docker", "--pull=never", "--no-cache"]
        self("build", *how, "--file", file, "--tag", name, context)

    def start(self, name: str, image: str, *options: str, arguments: Sequence[str] = ()) -> None:
        """Start a container; it has no network but its own."""
        self("run", "--detach", "--name", name, *self._apart, *options, image, *arguments)

    def await_health(self, name: str) -> None:
        """Until the image's own check says so.

        Raises:
            ImageError: it doesn't in time, or the container has ended.
        """

        def is_healthy() -> bool:
            state = self("inspect", "--format={{.State.Status}} {{.State.ExitCode}}", name).strip()
            if state != "running 0":
                raise ImageError(f"{name} is {state}:\n{self.logs(name)}")
            return self.tried("healthcheck", "run", name)[0] == 0

        self.until(is_healthy, f"{name} isn't healthy", name)

    def until(self, is_so: Callable[[], bool], otherwise: str, name: str) -> None:
        """Wait for a condition; a container's output says why it isn't met."""
        deadline = time.monotonic() + STARTS_S
        while not is_so():
            if time.monotonic() > deadline:
                raise ImageError(f"{otherwise} after {STARTS_S} s:\n{self.logs(name)}")
            time.sleep(0.5)

    def stop(self, name: str) -> None:
        """Stop it by the image's signal.

        Raises:
            ImageError: it doesn't end by itself, or not with 0.
        """
        started = time.monotonic()
        self("stop", "--time", str(STOPS_S), name)
        code = self("inspect", "--format={{.State.ExitCode}}", name).strip()
        if code != "0" or time.monotonic() - started >= STOPS_S:
            raise ImageError(f"{name} ended with {code} when it was to stop:\n{self.logs(name)}")


def base_root(machine: Machine, log: Path) -> Path:
    """A root of Debian 13 with Python: made once."""
    target = cache() / "trixie-python"
    if not target.exists():
        building = Root(target.with_suffix(".building"), RELEASES[-1], machine, log)
        building.make()
        building.must(f"userdel {Root.USER}")  # the images make one of this name
        building.must(f"apt-get update -qq && apt-get install -yqq --no-install-recommends {' '.join(PACKAGES)}")
        building.directory.rename(target)
    return target


@contextmanager
def step(title: str) -> Iterator[None]:
    """Says what is done, and how long it took."""
    started = time.monotonic()
    sys.stdout.write(f"{title} … ")
    sys.stdout.flush()
    yield
    sys.stdout.write(f"{time.monotonic() - started:.1f} s\n")


def check_broker(podman: Podman) -> None:
    """The broker's image serves; what it has stays. It runs afterwards."""
    with step("the broker is healthy"):
        podman.start("broker", "kohort", "--network=none", "--hostname=words-0", arguments=["--advertise", "localhost"])
        podman.await_health("broker")
    with step("it takes records, and gives them back"):
        for topic in ("words", "counts"):
            podman("exec", "broker", "kohort", "topics", "create", topic, "--partitions", "1")
        words = [f'{{"word":"{word}"}}' for word in ("a", "b", "a")]
        produce = ("kohort", "produce", "words", "--format", "json", "--key", "word")
        podman("exec", "--interactive", "broker", *produce, given="\n".join(words) + "\n")
        expect(consumed(podman, "words") == words, f"not what was sent: {consumed(podman, 'words')}")
    with step("SIGTERM ends it, and it comes back with its data"):
        podman.stop("broker")
        podman("start", "broker")
        podman.await_health("broker")
        expect(consumed(podman, "words") == words, f"not what was sent: {consumed(podman, 'words')}")


def check_application(podman: Podman) -> None:
    """An application's image, beside the broker, as a pod of the chart."""
    context = WORK / "application"
    context.mkdir(exist_ok=True)
    (context / "main.py").write_text(PROGRAM)
    shown = re.findall(r"^#   ((?:FROM|COPY) .*)$", (DOCKER / "application.Dockerfile").read_text(), re.MULTILINE)
    (context / "Dockerfile").write_text("\n".join(shown) + "\n")
    given = {
        "BOOTSTRAP_SERVERS": "localhost:9092",
        "GROUP_INSTANCE_ID": "words-0",
        "SESSION_TIMEOUT_MS": "60000",
        "APPLICATION_SERVER": "words-0:8080",
        "NUMBA_CACHE_DIR": "/var/lib/kohort/.numba",
    }
    with step("an application is built on its image"):
        podman.build("words", context / "Dockerfile", context)
    with step("it is healthy, without a right and with a root file system that it can't write to"):
        environment = [f"--env={name}={value}" for name, value in given.items()]
        podman.start("words", "words", "--network=container:broker", *AS_IN_THE_CHART, *environment)
        podman.await_health("words")
    with step("it comes to its first result"):
        podman.until(lambda: len(consumed(podman, "counts")) >= 2, "no counts have come", "words")
        counts = sorted(consumed(podman, "counts"))
        expect(counts == ['{"word":"a","n":2}', '{"word":"b","n":1}'], f"wrong counts: {counts}")
    with step("SIGTERM ends it"):
        podman.stop("words")


def consumed(podman: Podman, topic: str) -> list[str]:
    """The values of a topic's records."""
    return podman("exec", "broker", "kohort", "consume", topic, "--from-beginning", "--exit").splitlines()


def expect(is_so: bool, otherwise: str) -> None:
    """Raises ImageError unless it is so."""
    if not is_so:
        raise ImageError(otherwise)


def carry_out() -> None:
    """All of it, with mounts and processes of our own.

    Raises:
        ImageError, MirrorError, RootError: something isn't as it should be.
    """
    podman, log = Podman(WORK), WORK / "log"
    with step("a base of Debian's packages"):
        podman.make_base(base_root(this_machine(), log), f"docker.io/library/{base_of(DOCKER / 'broker.Dockerfile')}")
    with step("the broker's image is built"):
        podman.build("kohort", DOCKER / "broker.Dockerfile", REPOSITORY)
    check_broker(podman)
    with step("the applications' image is built"):
        podman.build("kohort-application", DOCKER / "application.Dockerfile", REPOSITORY)
    check_application(podman)
    podman.stop("broker")


def ready() -> None:
    """Raises RootError with a sentence if this machine can't."""
    if os.geteuid() != 0:
        raise RootError("containers are made by root here: run 'sudo python -m tests.deploy.images'.")
    install([DEBOOTSTRAP, PODMAN])
    for tool in (DEBOOTSTRAP, PODMAN):
        if not tool.is_there():
            raise RootError(f"{tool.missing}.")
    if not can_mount():
        raise RootError("containers mount file systems, which this machine's root may not.")
    remove(WORK)
    WORK.mkdir(parents=True)
    if not enough_space(WORK, GIGABYTES):
        raise RootError(f"{GIGABYTES} GB of disk space are needed at {WORK}.")


def main() -> int:
    """1 with a sentence if something isn't as it should be."""
    described = (__doc__ or "").partition(":")[0] + "."
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.images", description=described)
    parser.add_argument("--keep", action="store_true", help="leave the images in .cache/images")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.inside:
            carry_out()
            return 0
        ready()
        # The shell is the first process, and ends last. Where cgroups of both versions are mounted, crun refuses.
        again = shlex.join([sys.executable, "-m", "tests.deploy.images", INSIDE])
        prepare = "mount -t proc proc /proc; umount /sys/fs/cgroup/unified 2>/dev/null"
        return subprocess.run([*ALONE, "/bin/sh", "-c", f"{prepare}; {again}; exit $?"], check=False).returncode
    except (ImageError, MirrorError, RootError) as error:
        sys.stdout.write(f"\n{error}\n")
        return 1
    finally:
        if not (options.inside or options.keep):
            remove(WORK)


if __name__ == "__main__":
    sys.exit(main())
