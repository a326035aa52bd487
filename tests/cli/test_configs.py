"""`kohort configs`, as a user calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.administering import Cluster, cluster, rows


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        found.ok("topics", "create", "t", "--set", "retention.ms=1000")
        yield found


def test_what_is_set_is_shown_and_the_rest_is_counted(at: Cluster) -> None:
    done = at.run("configs", "describe", "topic", "t")
    assert ["retention.ms", "1000", "topic"] in rows(done.stdout)
    assert "cleanup.policy" not in done.stdout
    assert "defaults; --all shows them" in done.stderr
    assert ["cleanup.policy", "delete", "default"] in rows(at.ok("configs", "describe", "topics", "t", "--all"))


def test_single_keys_with_all_there_is_to_say(at: Cluster) -> None:
    shown = at.ok(
        "configs", "describe", "topic", "t", "--key", "retention.ms", "--synonyms", "--documentation"
    )  # fmt: skip
    assert "retention.ms=1000 (topic)" in shown
    done = at.run("configs", "describe", "topic", "t", "--key", "nope")
    assert "topic t has no setting nope" in done.stderr


def test_settings_are_altered(at: Cluster) -> None:
    at.ok("configs", "alter", "group", "app", "--set", "streams.num.standby.replicas=1")
    (group,) = at.json("configs", "describe", "group", "app")
    (setting,) = (each for each in group["settings"] if each["source"] == "group")
    assert group["kind"] == "group"
    assert (setting["name"], setting["value"], setting["source"]) == ("streams.num.standby.replicas", "1", "group")
    at.ok("configs", "alter", "group", "app", "--unset", "streams.num.standby.replicas")
    (group,) = at.json("configs", "describe", "group", "app")
    assert {each["source"] for each in group["settings"]} == {"file"}  # what the broker was started with
    at.ok("configs", "alter", "topic", "t", "--append", "cleanup.policy=compact", "--validate-only")
    at.ok("configs", "alter", "topic", "t", "--append", "cleanup.policy=compact")
    at.ok("configs", "alter", "topic", "t", "--subtract", "cleanup.policy=delete")
    (topic,) = at.json("configs", "describe", "topic", "t", "--key", "cleanup.policy")
    assert topic["settings"][0]["value"] == "compact"
    assert "INVALID_CONFIG" in at.fails("configs", "alter", "topic", "t", "--set", "nope=1")


def test_brokers_have_settings_of_their_own_and_in_common(at: Cluster) -> None:
    (one,) = at.json("configs", "describe", "broker", "1", "--all")
    assert {"log.retention.hours", "num.partitions"} <= {setting["name"] for setting in one["settings"]}
    assert at.json("configs", "describe", "broker")[0]["name"] == ""


def test_what_has_settings_is_listed(at: Cluster) -> None:
    assert {"kind": "topic", "name": "t"} in at.json("configs", "list", "topic")
    assert ["topic", "t"] in rows(at.ok("configs", "list"))


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["describe", "toppic", "t"], "did you mean topic?", 2),
        (["describe", "house", "t"], "these have: topic, broker", 2),
        (["describe", "topic"], "which topic?", 2),
        (["describe", "broker", "one"], "a broker's id is wanted", 2),
        (["alter", "topic", "t"], "nothing to alter", 2),
        (["describe", "topic", "tt"], "did you mean 't'?", 1),
    ],
)
def test_wrong_calls(at: Cluster, arguments: list[str], said: str, code: int) -> None:
    assert said in at.fails("configs", *arguments, code=code)
