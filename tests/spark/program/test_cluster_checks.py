"""What is checked in the cluster before an instance joins, with a broker."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType

from kohort.client import Admin, Consumer, OffsetAndMetadata, StreamsMember, TopicPartition
from kohort.client.config import ClientConfig
from kohort.client.streams.settings import GroupProtocol
from kohort.client.streams_member import Assigned
from kohort.spark.errors import ProgramError
from kohort.spark.program import cluster_checks
from kohort.spark.program.aggregates import count
from kohort.spark.program.cluster_checks import check_against
from kohort.spark.program.committed_metadata import Fingerprint, metadata, noted
from kohort.spark.program.compiled import (
    AggregateSpec,
    Branch,
    InputSide,
    Program,
    RowsInput,
    SidesInput,
    TopicInput,
    ToRows,
)
from kohort.spark.program.fingerprint import fingerprint
from kohort.spark.program.format_digests import store_formats
from kohort.spark.program.settings import AppSettings
from kohort.spark.program.store_formats import StoreFormat
from kohort.spark.program.topology import topology
from kohort.spark.program.upgrade_plan import read_plan
from kohort.spark.program.upgrade_rules import Fate
from kohort.testing import Broker
from tests.spark.program.programs import FLIGHT, program, source, spec

_names = (f"checked{number}" for number in itertools.count())


def with_admin(broker: Broker, test: Callable[[Admin, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Admin(broker.bootstrap_servers) as admin:
            await test(admin, next(_names))

    asyncio.run(main())


async def create(admin: Admin, name: str, *, airlines: int = 2) -> Program:
    """The program of that name, and its topics."""
    for topic, partitions in (("flights", 2), ("airlines", airlines), ("out", 1)):
        await admin.topics.create(f"{name}.{topic}", partitions=partitions)
    return program(name, prefix=f"{name}.")


def test_a_program_whose_topics_are_there_is_fine(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        await check_against(admin, await create(admin, name))

    with_admin(kohort_broker, test)


def test_topics_that_are_missing_are_named_all_at_once(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        with pytest.raises(
            ProgramError,
            match=rf"^{name} lacks topics: x\.airlines, x\.flights, read; x\.out, written\. Create them, if need be "
            r"with --partitions N: kohort topics create x\.airlines x\.flights x\.out$",
        ):
            await check_against(admin, program(name, prefix="x."))
        await admin.topics.create("x.flights", partitions=3)
        with pytest.raises(ProgramError, match=r"topics create x\.airlines x\.out -b 127.0.0.1:1 --partitions 3$"):
            await check_against(admin, program(name, prefix="x."), client=ClientConfig(bootstrap_servers="127.0.0.1:1"))
        await create(admin, name)
        with pytest.raises(ProgramError, match=rf"lacks a topic: {name}\.dead, written\. Create it, .*\.dead$"):
            await check_against(admin, program(name, prefix=f"{name}.", dead=f"{name}.dead"))

    with_admin(kohort_broker, test)


def test_topics_that_are_joined_need_equally_many_partitions(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        joined = await create(admin, name, airlines=3)
        with pytest.raises(
            ProgramError,
            match=rf"need equally many partitions, but {name}\.flights has 2, {name}\.airlines has 3: create "
            rf"'{name}\.airlines' with 2 partitions, or make the table an app\.global_table",
        ):
            await check_against(admin, joined)

        subtopology = replace(joined.subtopologies[0], input=RowsInput("rows", FLIGHT, ("carrier",), partitions=2))
        with pytest.raises(ProgramError, match=r"rows has 2, .*airlines has 3: leave partitions= out of \.repartition"):
            await check_against(admin, replace(joined, subtopologies=(subtopology,)))

        branch = Branch((), ToRows("", ("carrier",), FLIGHT))
        sides = tuple(InputSide(source(f"{name}.{topic}"), branch) for topic in ("flights", "airlines"))
        read = SidesInput((sides[0], sides[1]), FLIGHT, ("carrier",))
        subtopology = replace(joined.subtopologies[0], input=read, tables=())
        with pytest.raises(ProgramError, match=r"2 partitions, or leave repartition=False out of join_str"):
            await check_against(admin, replace(joined, subtopologies=(subtopology,)))

    with_admin(kohort_broker, test)


def test_another_topology_under_the_same_application_id(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        before = await create(admin, name)
        async with StreamsMember(
            kohort_broker.bootstrap_servers, name, before.topology, held_heartbeats=True
        ) as member:
            async for event in member:
                if isinstance(event, Assigned):
                    break
            await check_against(admin, before)
            after = program(name, prefix=f"{name}.", aggregate=spec("late", changelog=f"{name}-late-changelog"))
            with pytest.raises(
                ProgramError,
                match=rf"the group '{name}' runs another topology under this application_id: it has "
                rf"{name}-delays-changelog, {name}-delays-repartition, which this program hasn't; "
                rf"this program has {name}-late-changelog, .*"
                rf"Stop its instances before you start the changed program; app\.plan_upgrade\(\) says",
            ):
                await check_against(admin, after)

    with_admin(kohort_broker, test)


@pytest.mark.parametrize(("theirs", "other"), [("streams", "classic"), ("classic", "streams")])
def test_a_group_of_the_other_protocol(kohort_broker: Broker, theirs: GroupProtocol, other: GroupProtocol) -> None:
    async def test(admin: Admin, name: str) -> None:
        ours = await create(admin, name)
        async with StreamsMember(
            kohort_broker.bootstrap_servers, name, ours.topology, group_protocol=theirs, held_heartbeats=True
        ) as member:
            async for event in member:
                if isinstance(event, Assigned):
                    break
            await check_against(admin, ours, theirs)
            await check_against(admin, ours, "auto")
            with pytest.raises(
                ProgramError, match=rf"are running with group_protocol='{theirs}'.*={other!r}: state is"
            ):
                await check_against(admin, ours, other)
        await check_against(admin, ours, other)

    with_admin(kohort_broker, test)


def test_offsets_that_another_program_committed(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        before = await create(admin, name)
        input_0 = TopicPartition(f"{name}.flights", 0)
        for text in ("", "somebody's", '"text"', json.dumps({"stream_time": 1, "program": str(before.fingerprint)})):
            await admin.group_offsets.alter(name, {input_0: OffsetAndMetadata(7, metadata=text)})
            await check_against(admin, before)
        window = spec(size="2 hours", changelog=f"{name}-delays-changelog")
        with pytest.raises(
            ProgramError,
            match=rf"another program has committed under the application_id '{name}': store 'airlines' can't go on: "
            rf"another program's offsets don't say what it holds.* \(and 1 more: see app\.plan_upgrade",
        ):
            await check_against(admin, program(name, prefix=f"{name}.", aggregate=window))

    with_admin(kohort_broker, test)


def test_expressions_that_have_changed_are_warned_of_once(
    kohort_broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(admin: Admin, name: str) -> None:
        mine = await create(admin, name)
        fingerprint = replace(mine.fingerprint, expressions=("0a0a0a0a", "1b1b1b1b"))
        for partition, printed in ((0, fingerprint), (1, mine.fingerprint)):
            at = OffsetAndMetadata(7, metadata=metadata(1, printed))
            await admin.group_offsets.alter(name, {TopicPartition(f"{name}.flights", partition): at})
        for now, warned in (({"d.a": "0a0a0a0a", "d.b": "1b1b1b1b"}, 0), ({"d.a": "0a0a0a0a", "d.b": "2c2c2c2c"}, 1)):
            caplog.clear()
            monkeypatch.setattr(cluster_checks, "expression_digests", lambda _, now=now: now)
            await check_against(admin, mine)
            assert len(caplog.messages) == warned
        assert f"{name}: the expressions of d.b aren't those that the state was made with" in caplog.text
        assert "If you changed what they mean, give the program another application_id, and" in caplog.text
        assert "an aggregation(…) or a class of your own a new version" in caplog.text

    with_admin(kohort_broker, test)


def test_expressions_of_another_program_are_compared_by_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before, now = (StoreFormat("k", {"n": "1", "total": f"2:{printed}"}) for printed in "ab")
    said = metadata(1, Fingerprint("other"), formats=noted({"d": before}))
    monkeypatch.setattr(cluster_checks, "store_formats", lambda _: {"flights": {"d": now}})
    cluster_checks._compare_expressions(program(), {TopicPartition("flights", 0): OffsetAndMetadata(7, metadata=said)})
    assert "app: the expressions of d.total aren't those that the state was made with" in caplog.text


def test_a_group_of_another_kind(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        wanted = await create(admin, name)
        async with Consumer(kohort_broker.bootstrap_servers, group_id=name) as consumer:
            consumer.subscribe(f"{name}.flights")
            for _ in range(100):
                await consumer.poll(timeout_ms=100)
                if consumer.assignment():
                    break
            with pytest.raises(
                ProgramError, match=rf"'{name}' is the name of a c\w+ group: .* application_id of its own"
            ):
                await check_against(admin, wanted)

    with_admin(kohort_broker, test)


def test_a_changed_program_goes_on_with_what_another_has_left(kohort_broker: Broker) -> None:
    """Alone in its group, under a higher epoch where its topology is another; else it is told how."""

    async def test(admin: Admin, name: str) -> None:
        before = await create(admin, name)
        changelog = f"{name}-delays-changelog"
        flights, partials = f"{name}.flights", f"{name}-delays-repartition"
        async with StreamsMember(
            kohort_broker.bootstrap_servers, name, before.topology, held_heartbeats=True
        ) as member:
            async for event in member:
                if isinstance(event, Assigned):
                    break
            wider = program(name, prefix=f"{name}.", aggregate=more(changelog))
            formats = {topic: each for part in before.subtopologies for topic, each in store_formats(part).items()}
            said = {
                TopicPartition(topic, 0): OffsetAndMetadata(
                    0, metadata=metadata(1, before.fingerprint, formats=noted(formats[topic]))
                )
                for topic in (flights, partials)
            }
            await member.commit(said)
            assert await check_against(admin, before) == (0, ())
            with pytest.raises(ProgramError, match=rf"instances of another program run under .* '{name}'.*: stop them"):
                await check_against(admin, wider)
        assert await check_against(admin, before) == (0, ())
        assert await check_against(admin, wider) == (0, (before.fingerprint.text,))
        other = program(name, prefix=f"{name}.", aggregate=spec("late", changelog=f"{name}-late-changelog"))
        assert await check_against(admin, other) == (1, (before.fingerprint.text,))
        plan = await read_plan(admin, other)
        assert [(each.store, each.fate) for each in plan.stores] == [
            ("airlines", Fate.NEW), ("late", Fate.NEW), ("delays", Fate.LEFT),
        ]  # fmt: skip
        assert [(each.topic, each.fate) for each in plan.topics if each.fate is not Fate.KEPT] == [
            (f"{name}-late-repartition", Fate.NEW), (f"{name}-late-changelog", Fate.NEW),
            (changelog, Fate.LEFT), (partials, Fate.LEFT),
        ]  # fmt: skip
        assert [(each.topic, each.fate) for each in plan.sources] == [
            (flights, Fate.KEPT), (f"{name}.airlines", Fate.NEW),
        ]  # fmt: skip
        assert f"kohort topics delete {changelog} {partials}" in str(plan)
        window = program(name, prefix=f"{name}.", aggregate=spec(size="2 hours", changelog=changelog))
        with pytest.raises(
            ProgramError,
            match=r"store 'delays' can't go on: its groups, its window .* are others\. Give it another name in the "
            rf"program; or have it begin from nothing: kohort apps reset {name} --store delays",
        ):
            await check_against(admin, window)

    with_admin(kohort_broker, test)


def more(changelog: str) -> AggregateSpec:
    """The usual aggregate with another column."""
    kinds = (("n", LongType()), ("known", LongType()))
    counts = (("n", count()), ("known", count("delay")))
    return spec(changelog=changelog, aggregations=counts, state_columns=kinds, output_columns=kinds)


def test_a_plan_knows_which_topics_a_pattern_matches(kohort_broker: Broker) -> None:
    async def test(admin: Admin, name: str) -> None:
        before = await create(admin, name)
        read = TopicInput(replace(source(f"{name}.fl.*"), pattern=True))
        parts = (replace(before.subtopologies[0], input=read), *before.subtopologies[1:])
        made = topology(parts, AppSettings.of(name, "localhost:9092"))
        by_pattern = replace(before, subtopologies=parts, topology=made, fingerprint=fingerprint(parts))
        at = OffsetAndMetadata(7, metadata=metadata(1, by_pattern.fingerprint, formats=noted({})))
        await admin.group_offsets.alter(name, {TopicPartition(f"{name}.flights", 0): at})
        plan = await read_plan(admin, by_pattern)
        assert [(each.topic, each.fate) for each in plan.sources] == [
            (f"{name}.flights", Fate.KEPT), (f"{name}.airlines", Fate.NEW),
        ]  # fmt: skip

    with_admin(kohort_broker, test)
