"""What is said when the application stops."""

from __future__ import annotations

from kohort.spark.runtime.errors import unreadable


def test_a_bad_record_can_be_skipped_where_the_group_has_an_offset() -> None:
    assert "kohort groups reset-offsets GROUP --topic TOPIC:PARTITION --to-offset N" in str(unreadable("t-0"))
    assert "reset-offsets" not in str(unreadable("t-0", of_group=False))
