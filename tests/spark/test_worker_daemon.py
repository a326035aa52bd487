"""What Spark's Python workers are forked from: in a process of its own, since it loads modules and forks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked from it on Linux alone")


LOADED = "import json, os, sys, traceback\n{before}\nfrom kohort.spark.worker_daemon import preload\npreload()\n"
SERVING = """
for line in sys.stdin:
    program, forked = json.loads(line)
    if not forked:
        exec(program)
    elif os.fork() == 0:
        try:
            exec(program)
        except BaseException:
            print(traceback.format_exc())
        sys.stdout.flush()
        os._exit(0)
    else:
        os.wait()
    print(json.dumps(line), flush=True)
"""


class Daemon:
    """A process in which `preload` was called, as the daemon has called it when it forks workers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LOADED.format(before="") + SERVING],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip

    def run(self, program: str, forked: bool = True) -> list[str]:
        """The lines that a program prints in what is forked from it, or in itself."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = json.dumps([textwrap.dedent(program), forked]) + "\n"
        self._process.stdin.write(request)
        self._process.stdin.flush()
        found = []
        while (line := self._process.stdout.readline()) != json.dumps(request) + "\n":
            assert line, found
            found.append(line.removesuffix("\n"))
        return found

    def end(self) -> None:
        self._process.communicate()


def environment(path: str = "") -> dict[str, str]:
    """Of the daemon; `path` comes first where Python looks for modules."""
    path = os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}  # as Spark has it


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    daemon = Daemon()
    yield daemon
    daemon.end()


def run(program: str, path: str = "", before: str = "") -> list[str]:
    """The lines that a program prints in a daemon of its own.

    Args:
        path: comes first where Python looks for modules.
        before: runs before `preload`.
    """
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(before=before) + program],
        capture_output=True,
        text=True,
        check=False,
        env=environment(path),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_nothing_that_it_loads_leaves_a_thread_that_a_fork_would_lose(daemon: Daemon) -> None:
    assert daemon.run('print(len(os.listdir("/proc/self/task")))', forked=False) == ["1"]


def test_what_it_changes_around_libraries_is_for_their_loading_alone(daemon: Daemon) -> None:
    assert daemon.run('print([name for name in os.environ if name.startswith("JE_ARROW")])') == ["[]"]


def test_a_worker_loads_nothing_large_by_itself(daemon: Daemon) -> None:
    found = daemon.run(
        """
        import pyarrow as pa
        from pyspark.sql import types as T
        from kohort.client.config import ClientConfig
        from kohort.spark import reading
        from kohort.spark.epoch import OffsetRange
        from kohort.spark.jobs.stages.read_rows import RowsReading, read_rows_stage
        from tests.spark.jobs.fakes import FakeReader, FakeRpc, splits

        before = set(sys.modules)
        reading.shared = lambda servers: FakeReader([(0, 0, 100, b"k", b'{"a": 1}')])
        rpc = FakeRpc()
        rpc.ranges = (OffsetRange("t", 0, 0, 10),)
        schema = T.StructType().add("a", T.LongType()).json()
        servers = ClientConfig(bootstrap_servers="127.0.0.1:1")
        rows = RowsReading(servers, schema, "json", None, None, "fail", internal_columns=(), table=False)
        read = [row for batch in read_rows_stage(rpc.context, rows)(splits(0)) for row in batch.to_pylist()]
        table = pa.table({"a": [1, 2, 1]}).group_by("a").aggregate([("a", "count")])
        print(read, table.num_rows)
        print(sorted({name.partition(".")[0] for name in set(sys.modules) - before} - {"kohort"}))
        """
    )
    assert found == ["[{'a': 1}] 2", "[]"]


def test_workers_have_nothing_of_the_driver(daemon: Daemon) -> None:
    driver = ["aiohttp", "rich", "rocksdict", "kohort.broker", "kohort.spark.monitoring", "kohort.spark.runtime"]
    assert daemon.run(f"print([name for name in {driver} if name in sys.modules])") == ["[]"]


def test_pyspark_comes_from_where_it_is_installed_instead_of_the_archive_in_it() -> None:
    (installed,) = pyspark.__path__
    archive = str(Path(installed, "python", "lib", "pyspark.zip"))
    assert run("import pyspark\nprint(*pyspark.__path__)", archive) == [installed]


def test_pyspark_comes_from_an_archive_of_another_spark(tmp_path: Path) -> None:
    (installed,) = pyspark.__path__
    (tmp_path / "pyspark").symlink_to(installed)
    archive = str(tmp_path / "pyspark" / "python" / "lib" / "pyspark.zip")
    assert run("import pyspark\nprint(*pyspark.__path__)", archive) == [f"{archive}/pyspark"]


def test_workers_draw_random_numbers_of_their_own(daemon: Daemon) -> None:
    drawn = daemon.run(
        """
        import random
        import numpy as np

        def draw():
            print(random.random(), np.random.random(), flush=True)

        for _ in range(2):
            if os.fork() == 0:
                draw()
                os._exit(0)
            os.wait()
        """,
        forked=False,
    )
    assert len({number for line in drawn for number in line.split()}) == 4


def test_garbage_collections_of_workers_leave_out_what_it_has_loaded(daemon: Daemon) -> None:
    frozen, collected = map(int, daemon.run("import gc\nprint(gc.get_freeze_count())\nprint(len(gc.get_objects()))"))
    assert frozen > 100_000
    assert collected < frozen / 100


def test_workers_whose_connection_is_closed_end_without_a_word() -> None:
    sockets = tempfile.TemporaryDirectory()  # a socket's path has to be short
    serve = "from kohort.spark.internals import serve_workers\nserve_workers()"
    daemon = subprocess.Popen(
        [sys.executable, "-c", serve, "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={
            **os.environ, "PYTHON_UNIX_DOMAIN_ENABLED": "true", "PYTHON_WORKER_FACTORY_SOCK_DIR": sockets.name,
            "SPARK_REUSE_WORKER": "1", "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )  # fmt: skip

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        return connection

    def await_workers(*wanted: int) -> None:
        children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children")
        while tuple(map(int, children.read_text().split())) != wanted:
            assert daemon.poll() is None
            time.sleep(0.02)

    with sockets, daemon:
        assert daemon.stdin is not None and daemon.stdout is not None and daemon.stderr is not None
        path = daemon.stdout.read(int.from_bytes(daemon.stdout.read(4), "big")).decode()
        connect().close()  # before the worker is there
        waiting = connect()
        worker = int.from_bytes(waiting.recv(4), "big")
        await_workers(worker)
        waiting.close()  # while it waits for work
        await_workers()
        daemon.stdin.close()
        assert daemon.stderr.read().decode() == ""


def test_what_cant_be_loaded_is_left_to_workers() -> None:
    assert run("print('pyspark.worker' in sys.modules)", before="sys.modules['pyarrow.acero'] = None") == ["True"]


def test_what_a_worker_forks_keeps_its_seed(daemon: Daemon) -> None:
    drawn = daemon.run(
        """
        import numpy as np

        def forked(work):
            if os.fork() == 0:
                work()
                os._exit(0)
            os.wait()

        def draw():
            print(np.random.random(), flush=True)

        def worker():
            np.random.seed(7)
            forked(draw)
            draw()

        forked(worker)
        """,
        forked=False,
    )
    assert drawn[0] == drawn[1]
