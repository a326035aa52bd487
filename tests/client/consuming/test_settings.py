"""Settings that can be and that can't."""

from __future__ import annotations

import pytest

from kohort.client.consumer import Consumer
from kohort.client.consuming.consumed_partitions import EARLIEST, LATEST
from kohort.client.consuming.settings import FetchSettings, ResetPolicy
from kohort.client.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "ms"),
    [("PT1H", 3_600_000), ("P1DT12H", 129_600_000), ("PT0.5S", 500), ("PT1M30S", 90_000), ("P2D", 172_800_000)],
)
def test_durations(text: str, ms: int) -> None:
    policy = ResetPolicy.parse(f"by_duration:{text}")
    assert policy.resolve(10**12) == 10**12 - ms


def test_policies() -> None:
    assert [ResetPolicy.parse(text).resolve(5) for text in ("earliest", "latest", "none")] == [EARLIEST, LATEST, None]


@pytest.mark.parametrize("text", ["", "newest", "by_duration", "by_duration:", "by_duration:P", "by_duration:-PT1H"])
def test_other_policies_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="auto_offset_reset"):
        ResetPolicy.parse(text)


def test_what_else_cannot_be() -> None:
    with pytest.raises(ConfigError, match="isolation_level"):
        FetchSettings(isolation_level="serializable")
    with pytest.raises(ConfigError, match="fetch_max_bytes=0"):
        FetchSettings(fetch_max_bytes=0)
    with pytest.raises(ConfigError, match="auto_commit_interval_ms"):
        Consumer("localhost:1", auto_commit_interval_ms=0)
    with pytest.raises(ConfigError, match="group_protocol"):
        Consumer("localhost:1", group_id="g", group_protocol="modern")
