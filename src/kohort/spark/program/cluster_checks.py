"""Checks a program against the cluster, before an instance joins the group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kohort.client.errors import PartialFailureError
from kohort.client.streams.classic.protocol import PROTOCOL_TYPE
from kohort.client.types import OffsetAndMetadata, TopicInfo, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.spark.errors import ProgramError
from kohort.spark.program.committed_metadata import committed_by
from kohort.spark.program.compiled import CompiledSubtopology, Program, RowsInput
from kohort.spark.program.fingerprint import expression_digests

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupDescription
    from kohort.client.streams.settings import GroupProtocol

log = logging.getLogger(__name__)

_NO_GROUP: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)


async def check_against(admin: Admin, program: Program, group_protocol: GroupProtocol = "streams") -> None:
    """Compares a program with the cluster that it will run on.

    Args:
        group_protocol: how it is to join its group.

    Raises:
        ProgramError: topics that are missing, or have the wrong numbers of partitions; a group of that name that is of
            another kind, has another topology, or has committed for another program.
    """
    topics = await admin.topics.list(internal=True)
    _check_topics(program, topics)
    for subtopology in program.subtopologies:
        _check_copartitioned(subtopology, topics)
    _check_group(program, await _group(admin, program.application_id), group_protocol)
    _check_committed(program, await _committed(admin, program.application_id))


# Topics --------------------------------------------------------------------------------------------------------------


def _check_topics(program: Program, topics: Mapping[str, TopicInfo]) -> None:
    read = {source.topic for source in program.sources}
    if missing := sorted(read - topics.keys()):
        raise ProgramError(
            f"{_these(missing)} that {program.application_id} reads: there is no such topic. Create it: "
            f"kohort topics create {missing[0]} --partitions N"
        )
    if missing := sorted(set(program.sinks) - topics.keys()):
        raise ProgramError(
            f"{_these(missing)} that {program.application_id} writes: there is no such topic. Create it: "
            f"kohort topics create {missing[0]} --partitions N"
        )


def _these(names: list[str]) -> str:
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"topic {names[0]!r}{more}"


def _check_copartitioned(subtopology: CompiledSubtopology, topics: Mapping[str, TopicInfo]) -> None:
    counts = {name: len(topics[name].partitions) for name in subtopology.input_topics if name in topics}
    if isinstance(subtopology.input, RowsInput) and subtopology.input.partitions:
        counts = {subtopology.input.topic: subtopology.input.partitions, **counts}
    if len(set(counts.values())) <= 1:
        return
    first, *others = counts
    other = next(name for name in others if counts[name] != counts[first])
    listed = ", ".join(f"{name} has {number}" for name, number in counts.items())
    if isinstance(subtopology.input, RowsInput):
        remedy = "leave partitions= out of .repartition(…): its topic gets as many as the table's"
    else:
        remedy = (
            f"create {other!r} with {counts[first]} partitions, or make the table an app.global_table, or put "
            f".repartition(…) before the join: its topic gets as many partitions as the table's"
        )
    raise ProgramError(f"topics that are joined need equally many partitions, but {listed}: {remedy}")


# The group -----------------------------------------------------------------------------------------------------------


async def _group(admin: Admin, name: str) -> GroupDescription | None:
    try:
        return (await admin.groups.describe(name))[name]
    except (KafkaError, PartialFailureError) as error:
        _unless_missing(error)
        return None


async def _committed(admin: Admin, name: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
    try:
        return await admin.group_offsets.committed(name)
    except (KafkaError, PartialFailureError) as error:
        _unless_missing(error)
        return {}


def _unless_missing(error: KafkaError | PartialFailureError) -> None:
    errors: Iterable[Exception] = error.errors.values() if isinstance(error, PartialFailureError) else (error,)
    if not all(isinstance(each, KafkaError) and each.code in _NO_GROUP for each in errors):
        raise error


def _check_group(program: Program, group: GroupDescription | None, group_protocol: GroupProtocol) -> None:
    name = program.application_id
    if group is None:
        return
    given = _protocol_of(group)
    fits = given is not None and group_protocol in (given, "auto")
    if not fits and not group.members and group.state.lower() in ("empty", "dead"):
        return  # the coordinator makes a group of the other kind of it
    if given is not None and not fits:
        raise ProgramError(
            f"instances of {name!r} are running with group_protocol={given!r}: a group has one protocol. Start this "
            f"one with the same, or stop all before you start one with group_protocol={group_protocol!r}: state is kept"
        )
    if given == "classic":
        return  # members tell their leader which topology they run
    if given is None:
        raise ProgramError(
            f"{name!r} is the name of a {group.type} group: a streams application needs an application_id of its own"
        )
    if group.topology is None or group.topology_epoch != program.topology.epoch:
        return
    theirs = {
        name: (frozenset(each.inputs), frozenset(topic.name for topic in each.changelogs))
        for name, each in group.topology.subtopologies.items()
    }
    ours = {
        each.id: (frozenset(each.input_topics), frozenset(store.changelog for store in each.stores))
        for each in program.subtopologies
    }
    if theirs == ours:
        return
    raise ProgramError(
        f"the group {name!r} runs another topology under this application_id: {_difference(theirs, ours)}. "
        f"{_remedy(name, running=bool(group.members))}"
    )


def _protocol_of(group: GroupDescription) -> GroupProtocol | None:
    """Returns by which protocol streams applications are in a group; None for other groups."""
    if group.type == "streams":
        return "streams"
    return "classic" if group.type == "classic" and group.protocol_type == PROTOCOL_TYPE else None


_Topics = Mapping[str, tuple[frozenset[str], frozenset[str]]]


def _difference(theirs: _Topics, ours: _Topics) -> str:
    def topics(subtopologies: _Topics) -> set[str]:
        return {topic for pair in subtopologies.values() for some in pair for topic in some}

    gone, new = sorted(topics(theirs) - topics(ours)), sorted(topics(ours) - topics(theirs))
    differences = []
    if gone:
        differences.append(f"it has {', '.join(gone)}, which this program hasn't")
    if new:
        differences.append(f"this program has {', '.join(new)}, which it hasn't")
    return "; ".join(differences) or "the same topics are in other sub-topologies (compare app.describe())"


def _check_committed(program: Program, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    ours = {topic for subtopology in program.subtopologies for topic in subtopology.input_topics}
    digests = expression_digests(program.subtopologies)
    changed: set[str] = set()
    for partition, offset in committed.items():
        said = committed_by(offset.metadata)
        if partition.topic not in ours or said is None:
            continue
        if said.program != program.fingerprint:
            raise ProgramError(
                f"another program has committed under the application_id {program.application_id!r} (at {partition}): "
                f"its stores and repartition topics hold other columns, groups, windows or aggregates than this one's, "
                f"so this one can't go on from there. {_remedy(program.application_id, running=False)}"
            )
        pairs = zip(digests.items(), said.program.expressions, strict=False)
        changed.update(name for (name, now), before in pairs if now != before)
    if changed:
        log.warning(
            "%s: the expressions of %s aren't those that the state was made with, and it is used all the same. If you "
            "changed what they mean, give the program another application_id, and, so that no other instance goes on "
            "with this state, an aggregation(…) or a class of your own a new version. If they mean the same, or only "
            "Spark prints them otherwise, nothing needs to be done",
            program.application_id,
            ", ".join(sorted(changed)),
        )


def _remedy(name: str, *, running: bool) -> str:
    stop = "stop its instances, then " if running else ""
    return (
        f"Give the changed program another application_id, which begins from nothing; or {stop}reset this one: "
        f"kohort apps reset {name} --state-dir STATE_DIR removes its group, its internal topics and its state"
    )
