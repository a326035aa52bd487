"""What an instance says of its stores to those who ask for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kohort.spark.queries.queryable import StoreInfo, StoreRole
from kohort.spark.runtime.queryable_instance import QueryableInstance


@pytest.mark.parametrize(("ready", "role"), [(False, StoreRole.RESTORING), (True, StoreRole.GLOBAL)])
def test_a_global_table_is_whole_only_when_it_is_loaded(ready: bool, role: StoreRole) -> None:
    instance: Any = SimpleNamespace(
        stores=SimpleNamespace(get=lambda name, partition: "store"), globals=SimpleNamespace(ready=ready)
    )
    info = StoreInfo("airlines", (("carrier", "string"),), windowed=False, json_keys=False, subtopology=None)
    (found,) = QueryableInstance(instance, {"airlines": info}).open_stores("airlines")
    assert (found.name, found.partition, found.role) == ("airlines", None, role)
