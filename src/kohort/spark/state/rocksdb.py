"""Opens RocksDB, configured for many small stores in one process that share memory."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
    WriteBufferManager,
)

from kohort.spark.state.row_cache import RowBudget

FLUSHED_FILES: Final = 4
"""Files on level 0 from which on they are compacted: RocksDB's default."""

INGESTED_FILES: Final = 16
"""The same while files are ingested: else most would be compacted several times. Below `SLOWDOWN_FILES`."""

SLOWDOWN_FILES: Final = 20
"""Files on level 0 from which on RocksDB slows down writes: its default."""

_MIB: Final = 1024 * 1024


class StoreMemory:
    """Memory that stores share.

    Args:
        cache: bytes for the block cache, which includes indexes, filters and write buffers.
        write_buffers: how many of these bytes write buffers may have; beyond that, the store that writes flushes.
        rows: bytes, beside RocksDB's, for rows that were written last.

    Attributes:
        rows: what `RowCache`s share.
    """

    def __init__(self, cache: int = 128 * _MIB, write_buffers: int = 64 * _MIB, rows: int = 256 * _MIB) -> None:
        self.rows = RowBudget(rows)
        self.cache = Cache(cache)
        self.write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(write_buffers, False, self.cache)


_lock: Final = threading.Lock()
_default: StoreMemory | None = None


def default_memory() -> StoreMemory:
    """The memory that stores of this process share by default."""
    global _default
    with _lock:
        if _default is None:
            _default = StoreMemory()
        return _default


def open_rocksdb(path: Path, memory: StoreMemory) -> Rdict:
    """Opens the database in a directory, which is made if need be.

    Raises:
        Exception: rocksdict's error, if the files are corrupt or can't be opened.
    """
    return Rdict(str(path), _options(memory))


def open_sst_file(path: Path, memory: StoreMemory) -> SstFileWriter:
    """Begins a file of rows in key order, as the database makes its own. It can be ingested once it is finished.

    The path must not be a file: it may be the other name of one that the database has, and would be cut off.

    Raises:
        Exception: rocksdict's error, if it can't be written.
    """
    writer = SstFileWriter(_options(memory))
    writer.open(str(path))
    return writer


def ingest_sst_file(db: Rdict, path: Path) -> None:
    """Takes the file's rows into the database, in one step, as newer than all that it has; the file is gone then.

    Raises:
        Exception: rocksdict's error.
    """
    options = IngestExternalFileOptions()
    options.set_move_files(True)
    db.ingest_external_file([str(path)], options)


def compact_from(db: Rdict, files: int) -> None:
    """Has a database compact once there are so many files on level 0.

    Raises:
        Exception: rocksdict's error.
    """
    db.set_options({"level0_file_num_compaction_trigger": str(files)})


def holds_up_writes(db: Rdict) -> bool:
    """Whether the database slows down or stops writes until it has compacted or flushed.

    Not if that failed: then a write tells the error.
    """

    def value(name: str) -> int:
        return db.property_int_value(f"rocksdb.{name}") or 0

    if value("num-files-at-level0") < SLOWDOWN_FILES and not value("is-write-stopped"):
        return False
    return not value("background-errors")


def _options(memory: StoreMemory) -> Options:
    tables = BlockBasedOptions()
    tables.set_block_cache(memory.cache)
    tables.set_cache_index_and_filter_blocks(True)  # so that they count as cache
    tables.set_block_size(8 * 1024)
    tables.set_bloom_filter(10, False)
    tables.set_format_version(5)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(tables)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_manager(memory.write_buffers)
    options.set_write_buffer_size(16 * _MIB)
    options.set_arena_block_size(64 * 1024)  # the memory of an empty store
    options.set_level_zero_file_num_compaction_trigger(FLUSHED_FILES)
    options.set_level_zero_slowdown_writes_trigger(SLOWDOWN_FILES)
    options.set_max_open_files(256)
    options.set_max_background_jobs(2)
    # After a crash of the machine the store has all writes up to some point, and none after it.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    # Small files beside the data, so that opening and closing is quick.
    options.set_max_total_wal_size(64 * _MIB)
    options.set_manifest_preallocation_size(64 * 1024)
    options.set_keep_log_file_num(1)
    options.set_max_log_file_size(1 * _MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_skip_stats_update_on_db_open(True)
    return options
