"""Whole instances in virtual time; member, task manager and coordinator are the real ones. See `make simulate`."""

from __future__ import annotations

from tests.simulation.runtime.scenario import Scenario


def test_one_instance_without_faults() -> None:
    cluster = Scenario(1, processes=1).run()
    assert cluster.oracle.commits > 50 and cluster.counts["Lost"] == 0
