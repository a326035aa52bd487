"""Chooses how records go: as columns or as rows."""

from __future__ import annotations

from kohort.cli.data.record_path import RecordPath
from kohort.extras import ARROW, are_installed


def choose_path() -> RecordPath:
    """Columns if the extra `arrow` is installed: they are several times as fast."""
    if not are_installed(ARROW):
        from kohort.cli.data import row_path

        return row_path
    from kohort.cli.data.no_pandas import without_pandas

    without_pandas()
    from kohort.cli.data import column_path

    return column_path
