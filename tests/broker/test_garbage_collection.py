from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kohort.broker import garbage_collection
from kohort.broker.garbage_collection import ShortPauses


@pytest.fixture
def pauses() -> Iterator[ShortPauses]:
    pauses = ShortPauses()
    yield pauses
    pauses.close()


def test_what_a_full_collection_leaves_is_not_looked_at_again(pauses: ShortPauses) -> None:
    kept = [[number] for number in range(10_000)]
    gc.collect()
    assert len(gc.get_objects()) < len(kept)
    frozen = gc.get_freeze_count()
    del kept
    assert gc.get_freeze_count() < frozen - 9_000  # freed without a collection


def test_all_are_looked_at_again_when_there_are_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "VERY_MANY", gc.get_freeze_count() + 1)
    pauses = ShortPauses()
    try:
        gc.collect()
        assert gc.get_freeze_count() == 0
    finally:
        pauses.close()
