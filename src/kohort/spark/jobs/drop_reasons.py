"""Why records and rows are dropped, as metrics name it: all are counted by `EpochStatistics.drop`.

| reason | where it is found |
| --- | --- |
| unreadable, no value | stages.read_rows |
| misplaced | stages.partition_check, for stages.read_rows |
| no key | stages: read_rows, join, state_lookup, arrow_aggregate; tables: subtopology_jobs, processors.*_join |
| no topic | runtime.named_topics |
| no window | late_rows, counted by stages.late_partials; processors.dedupe, processors.top, processors.as_of_join |
| no order | processors.latest, processors.top |

Late rows are counted apart from these, in `EpochStatistics.late`.
"""

from __future__ import annotations

from typing import Final

UNREADABLE: Final = "unreadable"
"""It couldn't be decoded, and `on_error` lets the others go on."""
MISPLACED: Final = "misplaced"
"""It lies in another partition than its key's columns lead to, and `on_error` lets the others go on."""
NO_VALUE: Final = "no value"
"""It is a tombstone, of a stream."""
NO_KEY: Final = "no key"
"""It lacks the key that it is kept or aggregated by."""
NO_TOPIC: Final = "no topic"
"""A column names a topic for a row that isn't there, and `on_error` lets the others go on."""
NO_WINDOW: Final = "no window"
"""A row's time is null, or out of the years that windows have."""
NO_ORDER: Final = "no order"
"""The column that its group's rows are ordered by is null."""
