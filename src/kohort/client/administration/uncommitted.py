"""What is said of partitions that a group has committed nothing for: their records may be left to read, or not."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupType
from kohort.plurals import several


def where_it_begins(kind: GroupType, lags: Iterable[PartitionLag]) -> str:
    """A sentence, without a full stop; "" where no such partition has records.

    Args:
        kind: the group's type.
        lags: of its partitions.
    """
    records = [lag.uncommitted for lag in lags if lag.uncommitted]
    if not records:
        return ""
    where = f"{several(len(records), 'partition')} without a commit {'has' if len(records) == 1 else 'have'}"
    if kind is GroupType.STREAMS:
        begins = "a streams application reads them, unless it is set to begin at the latest"
    else:
        begins = "members with auto.offset.reset=earliest read them, others begin at the end"
    return f"{where} {several(sum(records), 'record')}: {begins}"
