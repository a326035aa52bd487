from __future__ import annotations

from kohort.spark.monitoring.pauses import Pause, pauses_between
from tests.spark.monitoring.events import epoch


def test_a_pause_lasts_from_a_tasks_commit_to_its_next() -> None:
    epochs = [
        ("a", epoch(1.0, ["0_0", "0_1"])),
        ("a", epoch(2.0, ["0_1"], took_ms=1_500)),
        ("b", epoch(4.0, ["0_0"], took_ms=1_000)),
    ]
    assert list(pauses_between(epochs)) == [
        Pause("0_0", "a", "b", 1.0, 3.0, 4.0),
        Pause("0_1", "a", "a", 1.0, 0.5, 2.0),
    ]
    moved, stayed = pauses_between(epochs)
    assert (moved.seconds, moved.idle, moved.moved) == (3.0, 2.0, True)
    assert (stayed.seconds, stayed.idle, stayed.moved) == (1.0, 0.0, False)
