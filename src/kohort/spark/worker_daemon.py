"""The process that Spark's Python workers are forked from, with all loaded that they need: they share its memory.

    python -m kohort.spark.worker_daemon pyspark.worker

Spark's own daemon loads nothing, and each worker numpy, pyarrow, numba, pandas, PySpark and Kohort by itself: more than
a second of processor time, and some 140 MiB. Spark leaves it to the workers because a fork loses threads, which
libraries may start; these don't, but for OpenBLAS's, which are started again. What can't be loaded is left to workers.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from kohort.spark.internals import WORKER_MODULE, leave_out_zipped_pyspark, serve_workers

_log = logging.getLogger(__name__)

_MODULES: Final = (
    "pandas",  # pyarrow asks for it with the first array that it makes
    "pyarrow.acero",
    "kohort.spark.jobs.stages.arrow_aggregate",
    "kohort.spark.jobs.stages.encode_values",
    "kohort.spark.jobs.stages.join",
    "kohort.spark.jobs.stages.read_rows",
    "kohort.spark.jobs.stages.state_lookup",
    "kohort.spark.jobs.stages.state_merge",
    "kohort.spark.reading.reader",
    "kohort.spark.reading.secrets",
)
_NO_THREADS: Final = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""What pyarrow goes by when it is loaded. numpy goes by OMP_NUM_THREADS, which Spark sets to 1 unless told otherwise;
threads that it has beyond that are stopped before a fork, and start again after it."""


def preload() -> None:
    """Loads what workers need, and takes it out of garbage collections, which would copy it."""
    leave_out_zipped_pyspark()
    import_module(WORKER_MODULE)
    try:
        with _environment(_NO_THREADS):
            for name in _MODULES:
                import_module(name)
        _load_compiled_code()
        _seed_workers()
    except Exception:
        _log.warning("Python workers load by themselves what couldn't be loaded for all of them", exc_info=True)
    gc.collect()
    gc.freeze()


def _seed_workers() -> None:
    """The global generator of numpy has its seed already: each worker gives it another. Python's does so by itself."""
    import numpy as np

    daemon = os.getpid()

    def seed() -> None:
        if os.getppid() == daemon:
            np.random.seed()

    os.register_at_fork(after_in_child=seed)


def _load_compiled_code() -> None:
    """Code is read from its cache, or compiled, when it is called first."""
    import pyarrow as pa
    from pyspark.sql import types as T  # noqa: N812

    from kohort.client.column_codec import load_columns
    from kohort.spark.formats.json_decoder import JsonDecoder

    load_columns().result()
    columns = T.StructType().add("time", T.TimestampType()).add("date", T.DateType()).add("text", T.StringType())
    JsonDecoder(columns).decode(pa.array(['{"time":"2013-01-01T05:00:00Z","date":"2013-01-01","text":"é"}'.encode()]))


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Meanwhile these are set, where nothing else is."""
    mine = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]


if __name__ == "__main__":
    preload()
    serve_workers()
