"""Decides which records and batches compaction retains, as Kafka's Cleaner does (KIP-534)."""

from __future__ import annotations

from itertools import compress
from typing import Final, NamedTuple

from kohort.log.config import LogConfig
from kohort.log.records import ParsedRecord, rebuilt, records_of
from kohort.log.scan import ScannedBatch
from kohort.log.transaction_index import AbortedTransaction, TransactionIndex
from kohort.log.transaction_markers import read_marker
from kohort.protocol.records.batch import NO_TIMESTAMP, BatchHeader, Compression
from kohort.protocol.records.rows import payload_of
from kohort.protocol.records.varint import varint

_MAP_BYTES: Final = 128 << 20
_KEY_COST: Final = 140
"""Bytes of an entry of the offset map, without the key's own."""

_HAS_DELETE_HORIZON: Final = 0x40


class LastRecord(NamedTuple):
    """The last offset of an active producer's data (-1 if it has none in its epoch), and that epoch."""

    last_offset: int
    epoch: int


class _CleanedTransactions:
    """Tracks transactions while a log is read in order, to find batches of aborted ones."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._pending = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        self._committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Returns whether a batch of data belongs to an aborted transaction."""
        self._advance_to(header.last_offset)
        if not header.transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_empty_transaction(self, batch: ScannedBatch) -> tuple[bool, AbortedTransaction | None]:
        """Returns whether no batch of a marker's transaction is left; otherwise also its entry, if it was aborted."""
        header = batch.header
        self._advance_to(header.last_offset)
        marker = read_marker(batch.data, header)
        if marker is None:
            # An emptied batch ends nothing; control batches of other types are retained.
            return header.record_count == 0, None
        producer_id = header.producer_id
        if marker.commit:
            has_batches = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_batches, None
        entry = self._aborted.pop(producer_id, None)
        if entry is None or producer_id not in self._seen:
            return True, None
        self._seen.discard(producer_id)
        return False, entry

    def _advance_to(self, offset: int) -> None:
        while self._pending and self._pending[-1].first_offset <= offset:
            entry = self._pending.pop()
            # The offset map starts at the first dirty offset; transactions that ended before don't matter.
            if entry.last_offset >= offset:
                self._aborted.setdefault(entry.producer_id, entry)


class OffsetMap:
    """The latest offset of each key from `start` to `end`, which is lower than requested if memory is short."""

    def __init__(self, start: int, until: int, aborted: list[AbortedTransaction]) -> None:
        self.offsets: dict[bytes, int] = {}
        self.end = until
        self._start = start
        self._room = _MAP_BYTES
        self._transactions = _CleanedTransactions(aborted)

    def add(self, batch: ScannedBatch) -> bool:
        """Adds the next batch; returns False if there is no room, and the map ends before it."""
        header, offsets = batch.header, self.offsets
        if header.control:
            self._transactions.is_empty_transaction(batch)
            return True
        if self._transactions.is_aborted(header) or not header.record_count:
            return True
        if self._room <= 0:
            self.end = max(header.base_offset, self._start)
            return False
        for record in records_of(payload_of(batch.data, header), header):
            key = record.key
            if key is not None:
                if key not in offsets:
                    self._room -= len(key) + _KEY_COST
                offsets[key] = header.base_offset + record.offset_delta
        return True


class Cleaner:
    """Cleans a log's batches in order, from the first on.

    `aborted_index` is the transaction index of the new segment; it gets the aborted transactions with batches left.
    """

    def __init__(
        self,
        keys: OffsetMap,
        config: LogConfig,
        now: int,
        aborted: list[AbortedTransaction],
        last_records: dict[int, LastRecord],
        until: int,
    ) -> None:
        self.aborted_index: TransactionIndex | None = None
        self._keys = keys.offsets
        self._mapped_to = keys.end
        self._now = now
        self._horizon = now + config.delete_retention_ms
        self._level = config.compression_level
        self._last_records = last_records
        self._until = until
        self._transactions = _CleanedTransactions(aborted)

    def clean(self, batch: ScannedBatch) -> tuple[bytes, BatchHeader] | None:
        """Returns what is retained of a batch, and its header; None if nothing is."""
        header = batch.header
        horizon = header.delete_horizon
        empty_transaction = False
        if header.control:
            empty_transaction, entry = self._transactions.is_empty_transaction(batch)
            if entry is not None and self.aborted_index is not None:
                self.aborted_index.append(entry)
            discard = empty_transaction and horizon is not None and horizon <= self._now
        else:
            discard = self._transactions.is_aborted(header)
        if discard or not header.record_count:
            return self._emptied(header) if self._must_retain(header) else None
        payload = payload_of(batch.data, header)
        # A byte for each record: a list of the records could take 30 times what they do.
        kept = bytearray()
        tombstone, latest = False, -(2**63)
        for record in records_of(payload, header):
            retained = header.control or self._retains(record, header, horizon)
            kept.append(retained)
            if retained:
                tombstone = tombstone or record.tombstone
                latest = max(latest, record.timestamp_delta)
        if not any(kept):
            return self._emptied(header) if self._must_retain(header) else None
        set_horizon = horizon is None and (empty_transaction or tombstone)
        if all(kept) and not set_horizon:
            return batch.data[header.position : header.end], header
        if not header.log_append_time:
            # The records' own timestamps may not be validated, so the batch's maximum timestamp limits them.
            latest = min(header.base_timestamp + latest, header.max_timestamp)
            header = header._replace(max_timestamp=max(latest, NO_TIMESTAMP))
        return self._rewritten(header, payload, kept, set_horizon)

    def _retains(self, record: ParsedRecord, header: BatchHeader, horizon: int | None) -> bool:
        offset = header.base_offset + record.offset_delta
        if offset >= self._mapped_to:
            return True
        if record.key is None or offset < self._keys.get(record.key, -1):
            return False
        return not record.tombstone or horizon is None or self._now < horizon

    def _must_retain(self, header: BatchHeader) -> bool:
        """Returns whether a batch is needed without records: for a producer's sequence or epoch, or the last offset."""
        if header.next_offset == self._until:
            return True
        last = self._last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.control and header.producer_epoch == last.epoch

    def _emptied(self, header: BatchHeader) -> tuple[bytes, BatchHeader]:
        header = header._replace(attributes=header.attributes & ~_HAS_DELETE_HORIZON, base_timestamp=NO_TIMESTAMP)
        return rebuilt(header, b"", 0, Compression.NONE, None), header

    def _rewritten(
        self, header: BatchHeader, payload: bytes, kept: bytearray, set_horizon: bool
    ) -> tuple[bytes, BatchHeader]:
        """Rewrites a batch with some of its records: those whose byte in `kept` isn't 0."""
        base = header.base_timestamp
        records = compress(records_of(payload, header), kept)
        out = bytearray()
        if set_horizon:
            # The delete horizon replaces the base timestamp, which timestamp deltas are relative to.
            header = header._replace(attributes=header.attributes | _HAS_DELETE_HORIZON, base_timestamp=self._horizon)
            for record in records:
                delta = varint(base + record.timestamp_delta - self._horizon)
                out += varint(1 + len(delta) + record.end - record.body)
                out += b"\0"
                out += delta
                out += payload[record.body : record.end]
        else:
            for record in records:
                out += payload[record.start : record.end]
        codec = Compression(header.compression)
        return rebuilt(header, out, sum(kept), codec, self._level), header
