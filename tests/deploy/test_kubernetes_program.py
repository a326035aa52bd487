"""The program that docs/operations.md shows takes what the chart gives."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.deploy.promql import DEPLOY

CHART = DEPLOY / "helm" / "kohort-application"
PAGE = (DEPLOY.parent / "docs" / "operations.md").read_text().partition("## On Kubernetes")[2]
GIVEN = {
    "BOOTSTRAP_SERVERS": "kafka:9092",
    "GROUP_INSTANCE_ID": "flights-0",
    "SESSION_TIMEOUT_MS": "60000",
    "APPLICATION_SERVER": "flights-0.flights-instances.air.svc:8080",
    "STATE_DIR": "/var/lib/kohort",
}


def test_it_takes_all_that_is_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    (block,) = re.findall(r"^```python\n(import os\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    scope: dict[str, Any] = {}
    exec(block, scope)
    settings = scope["app"].settings
    assert (settings.group_instance_id, settings.session_timeout_ms) == ("flights-0", 60_000)
    assert settings.endpoint == ("flights-0.flights-instances.air.svc", 8080)
    assert set(re.findall(r'os\.environ\["(\w+)"\]', block)) == GIVEN.keys()


def test_the_chart_gives_it() -> None:
    template = (CHART / "templates" / "statefulset.yaml").read_text()
    of_others = {"POD_NAME", "NUMBA_CACHE_DIR", "SPARK_CONF_DIR"}
    assert set(re.findall(r"- name: ([A-Z_]+)\n", template)) == GIVEN.keys() | of_others
