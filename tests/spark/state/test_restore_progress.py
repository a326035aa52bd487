from __future__ import annotations

import pytest

from kohort.spark.state.restore_progress import why_rebuild


@pytest.mark.parametrize(
    ("position", "store_topic_id", "why"),
    [
        (None, "", None),
        (None, "t", None),
        (5, "", None),
        (5, "t", None),
        (10, "t", None),
        (5, "another", "the topic was deleted and created again"),
        (None, "another", "the topic was deleted and created again"),
        (11, "t", "the store is at offset 11, and the changelog ends at 10"),
        (4, "t", "the store is at offset 4, and the changelog begins at 5"),
    ],
)
def test_why_a_store_is_rebuilt(position: int | None, store_topic_id: str, why: str | None) -> None:
    assert why_rebuild(position, store_topic_id, "t", 5, 10) == why
