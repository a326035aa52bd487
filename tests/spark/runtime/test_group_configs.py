"""What an application asks of its group."""

from __future__ import annotations

from kohort.spark.program.settings import AppSettings
from kohort.spark.runtime.instance import group_configs


def test_the_group_is_told_what_the_user_says() -> None:
    settings = AppSettings.of("app", "localhost:9092", num_standby_replicas=1, session_timeout_ms=9_000)
    assert group_configs(settings) == {"streams.num.standby.replicas": "1", "streams.session.timeout.ms": "9000"}
    assert group_configs(AppSettings.of("app", "localhost:9092", num_standby_replicas=0)) == {
        "streams.num.standby.replicas": "0"
    }
    assert group_configs(AppSettings.of("app", "localhost:9092")) == {}  # what an operator has set stays
