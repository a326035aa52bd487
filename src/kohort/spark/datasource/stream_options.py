"""The options of a stream of Spark: those of reads but for an end, and its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.spark.datasource.options import STREAM_OPTIONS, ReadOptions, whole_number


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream reads.

    Attributes:
        read: as of a read; a stream begins at the end unless told otherwise, as Spark's own connector does.
        max_offsets: "maxOffsetsPerTrigger": the most offsets of a micro-batch, over all partitions; None for no limit.
        group_id: "groupId" (or "kafka.group.id"): the group that gets the offsets of finished micro-batches.
    """

    read: ReadOptions
    max_offsets: int | None
    group_id: str | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> StreamOptions:
        """Parses options. Raises as `ReadOptions.of`."""
        options = {name.lower(): value for name, value in given.items()}
        endless = [name for name in options if name.startswith("ending")]
        if endless:
            raise ValueError(
                f"option {endless[0]!r}: a stream has no end; .trigger(availableNow=True) reads what is there"
            )
        if not any(name.startswith("starting") for name in options):
            options["startingoffsets"] = "latest"
        most = options.get("maxoffsetspertrigger")
        return cls(
            read=ReadOptions.of(without_stream_options(options)),
            max_offsets=None if most is None else whole_number("maxOffsetsPerTrigger", most),
            group_id=options.get("groupid") or options.get("kafka.group.id") or None,
        )


def without_stream_options(given: Mapping[str, str]) -> dict[str, str]:
    """The options that a read has, too."""
    return {name: value for name, value in given.items() if name.lower() not in STREAM_OPTIONS}
