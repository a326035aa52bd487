"""`kohort features`, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.administering import Cluster, cluster, rows


@pytest.fixture
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def level(at: Cluster, feature: str) -> int:
    (found,) = [each["level"] for each in at.json("features", "describe")["features"] if each["feature"] == feature]
    return int(found)


def test_levels_are_shown_lowered_and_raised(at: Cluster) -> None:
    assert ["share.version", "0", "2", "2"] in rows(at.ok("features", "describe"))
    assert "could be downgraded: share.version to 0" in at.ok("features", "downgrade", "share.version=0", "--dry-run")
    assert level(at, "share.version") == 2
    at.ok("features", "downgrade", "share.version=1", "group.version=0", "--yes")
    assert (level(at, "share.version"), level(at, "group.version")) == (1, 0)
    assert "upgraded share.version to 2" in at.ok("features", "upgrade", "share.version=2")
    assert level(at, "share.version") == 2


def test_what_cannot_be_is_refused_and_changes_nothing(at: Cluster) -> None:
    assert "INVALID_UPDATE_VERSION" in at.fails("features", "upgrade", "share.version=9")
    assert "INVALID_UPDATE_VERSION" in at.fails("features", "downgrade", "group.version=0", "nope=0", "--yes")
    assert level(at, "group.version") == 1
    assert "FEATURE=LEVEL is wanted" in at.fails("features", "upgrade", "share.version", code=2)
