"""Tables as single batches."""

from __future__ import annotations

import pyarrow as pa


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """All rows in one batch.

    Raises:
        OverflowError: they don't fit into one: a column has more than 2 GiB.
    """
    batches = table.combine_chunks().to_batches()
    if len(batches) > 1:
        raise OverflowError(f"{table.num_rows} rows of {table.nbytes} bytes are too many at once")
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
