"""What commands have alike that list things by their names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kohort.cli.client.listing_options import first, name_filter
from tests.cli.administering import Cluster, cluster
from tests.cli.test_json_everywhere import COMMANDS_BY_NAME


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        found.ok("topics", "create", "orders", "orders-eu", "flights")
        yield found


@pytest.mark.parametrize("name", ["topics list", "groups list", "apps list", "transactions list", "users list"])
def test_their_options_are_called_alike(name: str) -> None:
    options = {option for each in COMMANDS_BY_NAME[name].params for option in each.opts}
    assert {"--pattern", "--limit", "--json", "--cluster", "--bootstrap-server", "--config", "--timeout"} <= options


def test_a_pattern_is_for_whole_names(at: Cluster) -> None:
    def names(*options: str) -> list[str]:
        return [each["name"] for each in at.json("topics", "list", *options)]

    assert names("--pattern", "orders") == ["orders"]
    assert names("--pattern", "orders.*") == ["orders", "orders-eu"]
    assert names("--limit", "2") == ["flights", "orders"]
    limited = at.run("topics", "list", "--limit", "1", "--json")
    assert "and 2 more" in limited.stderr
    assert "no such topics" in at.run("topics", "list", "--pattern", "x").stderr
    for pattern in ("(", "a{99999999999}", "(" * 5_000 + ")" * 5_000):
        assert f"--pattern {pattern[:9]}" in at.fails("topics", "list", "--pattern", pattern, code=2)


def test_first_and_filter() -> None:
    assert first(iter("abc"), None) == ["a", "b", "c"] and first("abc", 3) == ["a", "b", "c"]
    assert [name for name in ("a", "ab") if name_filter("a")(name)] == ["a"]
