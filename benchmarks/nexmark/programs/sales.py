"""What Structured Streaming has no SQL for, of winners that a join finds: functions of one's own that keep state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class Mean(StatefulProcessor):
    """A category's average price so far."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self._all = handle.getValueState("all", "sum BIGINT, count BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """The rows of a key."""
        before = self._all.get()
        total, count = before or (0, 0)
        for row in rows:
            total, count = total + row.price, count + 1
        self._all.update((total, count))
        yield Row(id=key[0], final=total / count)

    def close(self) -> None:
        """Nothing is open."""


class LastTen(StatefulProcessor):
    """The mean of a seller's ten auctions that expire last, of those at the same time the ones with the greatest id."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self._last = handle.getValueState("last", "expires ARRAY<BIGINT>, auction ARRAY<BIGINT>, price ARRAY<BIGINT>")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """The rows of a key."""
        before = self._last.get()
        sales = list(zip(*before, strict=True)) if before else []
        last = sorted([*sales, *((row.expires, row.auction, row.price) for row in rows)])[-10:]
        self._last.update(tuple(list(column) for column in zip(*last, strict=True)))
        yield Row(seller=key[0], avg_price=sum(price for _, _, price in last) / len(last))

    def close(self) -> None:
        """Nothing is open."""


def averages(winners: DataFrame) -> DataFrame:
    """q4: by category."""
    return winners.groupBy("id").transformWithState(Mean(), "id BIGINT, final DOUBLE", "Append", "None")


def last_ten(winners: DataFrame) -> DataFrame:
    """q6: by seller."""
    columns = "seller BIGINT, avg_price DOUBLE"
    return winners.groupBy("seller").transformWithState(LastTen(), columns, "Append", "None")
