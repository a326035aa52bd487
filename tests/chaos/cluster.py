"""The application on a Spark standalone cluster: a master and two workers, whose executors fetch by themselves.

python -m tests.chaos.cluster
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from kohort.spark.monitoring.journal_analysis import read_journals

from .field import Field, kohort_broker
from .flights import batch_result

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def main() -> int:
    """Run it until the output is what a batch gives; 1 if that doesn't come about, or no executor did it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind
    with ExitStack() as stack:
        tmp_path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kohort-cluster-")))
        server = stack.enter_context(kohort_broker())
        master = stack.enter_context(cluster(tmp_path / "spark", workers=2))
        field = Field(server, tmp_path)
        stack.callback(field.close)
        instance = field.instance("one", "--master", master, "--standbys", "0")
        for _ in field.send(seed=1, number=2_000, seconds=1):
            pass
        differences = field.settle(patience=240)
        expected = batch_result(field.delivered)
        left_out = Counter({"late": expected.late, "no key": expected.keyless, "no value": expected.empty})
        # The driver of such an application has no executor of its own: whoever fetched was in one of these.
        executors = {path.parents[1].name for path in (tmp_path / "spark").glob("worker-*/app-*/*")}
        code = instance.stop()
        counted = Counter[str]()
        for _, epoch in read_journals(instance.journal).epochs():
            counted.update({**epoch.reasons, "late": epoch.late})
        if differences or code or executors != {"worker-0", "worker-1"} or counted != left_out:
            say(f"WRONG: {len(differences)} groups differ, exit code {code}, executors on {executors}")
            say(f"left out: {counted} instead of {left_out}")
            say(instance.tail())
            return 1
        groups, places = len(expected.groups), " and ".join(sorted(executors))
        said = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
        say(f"stream and batch are equal: {groups} groups, by executors on {places}; both leave out {said}")
        return 0


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[str]:
    """A standalone cluster of one core and 600 MB a worker; the master's address."""
    port = free_port()
    with ExitStack() as stack:
        master = directory / "master.log"
        run_daemon(stack, master, "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_for(lambda: "I have been elected leader" in master.read_text(errors="replace"), "the master leads")
        for number in range(workers):
            work = directory / f"worker-{number}"
            run_daemon(
                stack, directory / f"worker-{number}.log", "worker.Worker", "--host", "127.0.0.1", "--cores", "1",
                "--memory", "600m", "--webui-port", "0", "--work-dir", str(work), f"spark://127.0.0.1:{port}",
            )  # fmt: skip
        text = "Registering worker"
        wait_for(lambda: master.read_text(errors="replace").count(text) == workers, "the workers are registered")
        yield f"spark://127.0.0.1:{port}"


def run_daemon(stack: ExitStack, log: Path, name: str, *options: str) -> None:
    """Run a daemon of Spark's until the stack is closed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", *options],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
        )  # fmt: skip

    def end() -> None:
        process.terminate()
        process.wait(120)

    stack.callback(end)


def wait_for(condition: Callable[[], bool], what: str, within: float = 240) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(0.1)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
