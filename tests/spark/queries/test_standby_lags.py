from __future__ import annotations

from kohort.spark.monitoring.lag import StandbyLag
from kohort.spark.queries.queryable import StoreRole, standby_lags
from tests.spark.queries.fakes import FakeInstance


def test_only_copies_whose_lag_is_known() -> None:
    instance = FakeInstance()
    instance.opens("delays", 0)
    instance.opens("delays", 1, role=StoreRole.STANDBY, lag=None)
    instance.opens("delays", 2, role=StoreRole.STANDBY, lag=17)
    instance.opens("airlines", 3, role=StoreRole.WARMUP, lag=0)
    instance.opens("planes", None, role=StoreRole.GLOBAL)
    assert sorted(standby_lags(instance)) == [
        StandbyLag("airlines", 3, "warm-up", 0),
        StandbyLag("delays", 2, "standby", 17),
    ]
