"""The process that Spark forks its Python workers from, with the imports of Kohort's stages done once, before the fork.

It is `pyspark.daemon`, which leaves imports to each worker: a second of processor time for each, while an application
starts. Spark runs it as `python -m MODULE` where `spark.python.daemon.module` says so.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Final

from pyspark import daemon

MODULE: Final = "kohort.spark.jobs.worker_daemon"
_PLAIN: Final = "pyspark.daemon"
_IMPORTS: Final = (
    "pyspark.worker",
    "kohort.spark.formats.json_decoder",
    "kohort.spark.jobs.stages.encode_values",
    "kohort.spark.jobs.stages.join",
    "kohort.spark.jobs.stages.read_rows",
    "kohort.spark.jobs.stages.state_lookup",
    "kohort.spark.reading.reader",
)
_THREADS: Final = Path("/proc/self/task")
_FORKABLE: Final = frozenset({"jemalloc_bg_thd"})
"""Threads whose owners see to forks: Arrow's allocator starts its own again in the child."""


def main() -> None:
    """Be the daemon."""
    for name in _IMPORTS:
        import_module(name)
    if not all(thread in _FORKABLE for thread in other_threads()):
        # A fork leaves them behind, with whatever locks they hold. The plain daemon has imported nothing.
        os.execv(sys.executable, [sys.executable, "-m", _PLAIN, *sys.argv[1:]])
    gc.collect()
    gc.freeze()  # so that no worker's garbage collection touches, and so copies, what all share
    daemon.manager()


def other_threads() -> list[str]:
    """The names of all threads of this process but the calling one, those of native libraries too; "?": not known."""
    try:
        own = str(threading.get_native_id())
        return [(each / "comm").read_text().strip() for each in _THREADS.iterdir() if each.name != own]
    except OSError:
        return ["?"]


if __name__ == "__main__":
    main()
