"""Writes the markers that end transactions."""

from __future__ import annotations

from collections.abc import Callable

from kohort.broker.group_coordinator import GroupCoordinator
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.topics import Partition
from kohort.protocol.errors import KafkaError
from kohort.protocol.stored import OFFSETS_TOPIC


class TransactionMarkers:
    """Writes a marker into each partition of a transaction; a marker of committed offsets goes to the groups, too."""

    def __init__(self, flusher: LogFlusher, groups: GroupCoordinator) -> None:
        self._flusher = flusher
        self._groups = groups

    def write(
        self,
        partition: Partition,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now: int,
        safe: Callable[[], None],
        failed: Callable[[KafkaError], None],
    ) -> None:
        """Writes the marker that ends a producer's transaction in a partition.

        Offsets that were committed in the transaction count from then on. Calls `safe`, now or later, once the marker
        is safe (`LogFlusher`), or `failed` if that is impossible.

        Raises:
            KafkaError: the partition's log refuses the marker.
        """
        partition.log.append_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            now=now,
            transaction_version=transaction_version,
        )
        if partition.topic.name == OFFSETS_TOPIC:
            self._groups.transaction_ended(partition.index, producer_id, producer_epoch, commit)
        self._flusher.when_safe(partition.log, safe, failed)
