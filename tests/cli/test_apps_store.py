"""`kohort apps reset --store` and `kohort apps plan`, as a user calls them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kohort.cli.client.store_reset import store_belongings
from kohort.client.addresses import parse_addresses
from kohort.client.admin import Admin
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark import StreamsApp
from kohort.spark.program.committed_metadata import Fingerprint, committed_by, metadata, noted
from kohort.spark.program.store_formats import StoreFormat, StoreFormats
from kohort.spark.program.upgrade_plan import UpgradePlan
from kohort.testing import Broker
from tests.cli.administering import cluster, rows
from tests.cli.support import invoke
from tests.client.administration.members import join_streams

SAME = StoreFormat("k", {"n": "1"})
T0, ROWS0 = TopicPartition("t", 0), TopicPartition("app-totals-repartition", 0)


def at(offset: int, **formats: StoreFormat) -> OffsetAndMetadata:
    named: StoreFormats = dict(formats)
    return OffsetAndMetadata(offset, metadata=metadata(5, Fingerprint("p"), 9, noted(named)))


def test_a_store_goes_with_its_changelog_and_its_rows_alone() -> None:
    there = {"app-totals-changelog", "app-totals-repartition", "app-others-changelog", "t"}
    found = store_belongings(
        "app", "totals", topics=there, committed={T0: at(7, others=SAME), ROWS0: at(3, totals=SAME)}
    )
    assert found.topics == ("app-totals-changelog", "app-totals-repartition")
    assert (found.forgotten, found.told) == ((ROWS0,), {})
    found = store_belongings("app", "others", topics=there, committed={T0: at(7, others=SAME, x=SAME), ROWS0: at(3)})
    assert found.topics == ("app-others-changelog",)
    assert (found.forgotten, dict(found.told)) == ((), {T0: at(7, x=SAME)})
    found = store_belongings("app", "other", topics=there, committed={T0: at(7, others=SAME)})
    assert found.nothing
    assert found.known == ("others",)


def test_what_is_kept_beside_a_store_goes_with_it() -> None:
    there = {"app-totals-changelog", "app-totals-waiting-changelog", "app-totals-more-changelog", "t"}
    said = at(7, **{"totals": SAME, "totals-waiting": SAME, "totals-more": SAME})
    found = store_belongings("app", "totals", topics=there, committed={T0: said})
    assert found.topics == ("app-totals-changelog", "app-totals-waiting-changelog")
    assert dict(found.told) == {T0: at(7, **{"totals-more": SAME})}


def test_offsets_that_do_not_say_what_stores_there_are_are_found() -> None:
    silent = OffsetAndMetadata(7, metadata=metadata(5, Fingerprint("p")))
    committed = {T0: silent, ROWS0: silent, TopicPartition("set", 0): OffsetAndMetadata(1)}
    assert store_belongings("app", "totals", topics=set(), committed=committed).untold == ("t",)


def test_one_store_of_a_stopped_application_is_reset() -> None:
    with cluster() as admins:
        admins.ok("topics", "create", "t", "app-totals-repartition")
        asyncio.run(join_streams(admins.servers, "app", "t"))
        assert "app has 1 member" in admins.fails("apps", "reset", "app", "--store", "store")
        admins.ok("groups", "remove-members", "app", "--all", "--yes")

        async def commit() -> None:
            async with Admin(admins.servers) as admin:
                await admin.group_offsets.alter("app", {T0: at(7, store=SAME, kept=SAME), ROWS0: at(3, totals=SAME)})

        asyncio.run(commit())
        assert "there is no store 'stor'; did you mean 'store'?" in admins.fails(
            "apps", "reset", "app", "--store", "stor"
        )
        assert "--store needs neither" in admins.fails("apps", "reset", "app", "--store", "x", "--by-name", code=2)
        shown = admins.json("apps", "reset", "app", "--store", "store", "--dry-run")
        assert shown == {"application_id": "app", "store": "store", "topics": ["app-store-changelog"], "done": False}
        assert "store of app is reset" in admins.ok("apps", "reset", "app", "--store", "store")
        assert "totals of app is reset" in admins.ok("apps", "reset", "app", "--store", "totals")

        async def left() -> tuple[dict[TopicPartition, OffsetAndMetadata], set[str]]:
            async with Admin(admins.servers) as admin:
                return await admin.group_offsets.committed("app"), {*await admin.topics.list()}

        offsets, topics = asyncio.run(left())
        assert topics == {"t"}
        assert {each: (where.offset, committed_by(where.metadata)) for each, where in offsets.items()} == {
            T0: (7, committed_by(at(7, kept=SAME).metadata))
        }


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("shop", "say the module and what the application is called there"),
        ("shop:", "say the module and what the application is called there"),
        ("shoppe:app", "there is no module 'shoppe' in this directory, or installed"),
        ("nothing.py", "there is no file nothing.py"),
        ("shop:nothing", "module 'shop' has no StreamsApp 'nothing'; it has app"),
    ],
)
def test_where_no_application_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, said: str) -> None:
    (tmp_path / "shop.py").write_text('from kohort.spark import StreamsApp\napp = StreamsApp("shop")\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = invoke("apps", "plan", place)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("place", ["shopping.py", "shopping.py:made", "shopping:made", "shopping:app"])
def test_a_plan_is_of_a_file_or_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kohort_broker: Broker, place: str
) -> None:
    def plan(app: StreamsApp) -> UpgradePlan:
        return UpgradePlan(app.settings.application_id, (), (), (), 0, False, ())

    monkeypatch.setattr(StreamsApp, "plan_upgrade", plan)
    _write_shopping(tmp_path, kohort_broker.bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    done = invoke("apps", "plan", place, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["application_id"] == "shop", done.stderr
    assert done.stderr == "compiling shop with Spark, which takes a while\n"


def test_the_cluster_of_a_plan_is_looked_for_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kohort_broker: Broker
) -> None:
    asked: list[object] = []

    def plan(app: StreamsApp) -> UpgradePlan:
        asked.append(app.settings.client.addresses)
        return UpgradePlan(app.settings.application_id, (), (), (), 0, False, ())

    monkeypatch.setattr(StreamsApp, "plan_upgrade", plan)
    _write_shopping(tmp_path, "127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    done = invoke("apps", "plan", "shopping.py", "--timeout", "0.2")
    assert done.exit_code == 1 and not asked
    assert "waiting, for 0.2 s: no broker answers at 127.0.0.1:1" in done.stderr
    done = invoke("apps", "plan", "shopping.py", "-b", kohort_broker.bootstrap_servers)
    assert done.exit_code == 0 and asked == [parse_addresses(kohort_broker.bootstrap_servers)], done.stderr


def _write_shopping(directory: Path, servers: str) -> None:
    text = f'app = StreamsApp("shop", bootstrap_servers="{servers}")\ndef made():\n    return app\n'
    (directory / "shopping.py").write_text(f"from kohort.spark import StreamsApp\n{text}")


def test_applications_are_listed_and_described() -> None:
    with cluster() as admins:
        admins.ok("topics", "create", "t")
        asyncio.run(join_streams(admins.servers, "app", "t"))
        assert rows(admins.ok("apps", "list")) == [
            ["Application", "Group", "State", "Members", "Stores", "Lag"],
            ["app", "streams", "Stable", "1", "1", "0"],
        ]
        admins.ok("groups", "remove-members", "app", "--all", "--yes")

        async def commit() -> None:
            async with Admin(admins.servers) as admin:
                left = StoreFormat("k", {"n": "1"}, left=True)
                await admin.group_offsets.alter("app", {T0: at(0, store=SAME, old=left)})
                await admin.group_offsets.alter("consumers", {T0: 0})

        asyncio.run(commit())
        assert [each["application_id"] for each in admins.json("apps", "list")] == ["app"]
        described = admins.json("apps", "describe", "app")
        assert described["kohort"]
        assert described["inputs"] == [{"topic": "t", "internal": False, "partitions": 1, "lag": 0, "uncommitted": 0}]
        assert [(each["store"], each["made_of"], each["columns"], each["left"]) for each in described["stores"]] == [
            ("old", "t", ["n"], True), ("store", "t", ["n"], False),
        ]  # fmt: skip
        assert [each["changelog"] for each in described["stores"]] == [None, "app-store-changelog"]
        assert ["store", "t", "n", "-", "0"] in rows(admins.ok("apps", "describe", "app"))
        assert "consumers is a classic group, not a streams" in admins.fails("apps", "describe", "consumers")
        assert "there is no group 'ap'; did you mean 'app'?" in admins.fails("apps", "describe", "ap")
