"""Tables of groups."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from kohort.cli.client.group_report import GroupReport, members_tables
from kohort.client.administration.group_types import GroupType
from tests.cli.test_awaited_members import group, member


@pytest.mark.parametrize(
    ("topics", "shown"),
    [
        (("orders",), False),
        (("returns", "orders"), True),
        ((), True),
        (("a", "b", "c", "d", "e", "f", "g"), True),
    ],
)
def test_subscriptions_are_shown_where_they_differ(topics: tuple[str, ...], shown: bool) -> None:
    both = replace(member("ann"), topics=("orders",)), replace(member("bob"), topics=topics)
    console = Console(width=200, record=True)
    console.print(*members_tables(GroupReport(group(GroupType.CONSUMER, "Stable", both), {})))
    text = console.export_text()
    assert ("Subscribes to" in text) is shown
    assert ("a, b, c, d, e, 2 more" in text) is (len(topics) > 5)


def test_a_subscription_that_nobody_tells_is_not_another_one() -> None:
    """Of classic members that have yet to join again in a rebalance, the broker tells no topics."""
    ann = replace(member("ann"), topics=("orders",), classic=True, has_metadata=True)
    both = ann, replace(member("bob"), classic=True, has_metadata=False)
    console = Console(width=200, record=True)
    console.print(*members_tables(GroupReport(group(GroupType.CLASSIC, "PreparingRebalance", both), {})))
    assert "Subscribes to" not in console.export_text()
