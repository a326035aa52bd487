"""Checks a program against the cluster, before an instance joins the group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.client.streams.classic.protocol import PROTOCOL_TYPE
from kohort.client.types import OffsetAndMetadata, TopicInfo, TopicPartition
from kohort.spark.errors import ProgramError
from kohort.spark.program.cluster_reading import committed_offsets, described_group
from kohort.spark.program.committed_metadata import committed_by
from kohort.spark.program.compiled import CompiledSubtopology, Program, RowsInput, SidesInput
from kohort.spark.program.fingerprint import expression_digests
from kohort.spark.program.format_digests import store_formats
from kohort.spark.program.store_formats import other_expressions
from kohort.spark.program.topics_there import NamedTopics, check_topics
from kohort.spark.program.topology_epochs import same_topology, topology_epoch
from kohort.spark.program.upgrade_plan import UpgradePlan, upgrade_plan

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupDescription
    from kohort.client.config import ClientConfig
    from kohort.client.streams.settings import GroupProtocol

log = logging.getLogger(__name__)

_COMMIT_S: Final = 5.0
_LOOK_S: Final = 0.5


class Joining(NamedTuple):
    """How a program joins its group.

    Attributes:
        topology_epoch: the epoch of the topology that it brings.
        before: the fingerprints of other programs that have committed, and whose state it goes on with.
    """

    topology_epoch: int
    before: tuple[str, ...]


async def check_against(
    admin: Admin, program: Program, group_protocol: GroupProtocol = "streams", client: ClientConfig | None = None
) -> Joining:
    """Compares a program with the cluster that it will run on, and says how it joins its group there.

    Args:
        group_protocol: how it is to join its group.
        client: how the cluster is reached, for commands that messages show.

    Raises:
        ProgramError: topics that are missing, or have the wrong numbers of partitions; a group of that name that is of
            another kind, has another topology and runs, or whose state the program can't go on with.
    """
    topics = await admin.topics.list(internal=True)
    named = NamedTopics(frozenset(source.topic for source in program.sources), frozenset(program.sinks))
    joined = [subtopology.copartitioned for subtopology in program.subtopologies]
    check_topics(program.application_id, named, topics, client, joined)
    for subtopology in program.subtopologies:
        _check_copartitioned(subtopology, topics)
    group = await described_group(admin, program.application_id)
    _check_group(program, group, group_protocol)
    committed = await _committed(admin, program, wait=group is not None and bool(group.members))
    plan = await upgrade_plan(admin, program, group, committed, topics)
    _check_plan(plan, ours=_has_committed(program, committed))
    _compare_expressions(program, committed)
    if plan.changed:
        log.info("%s goes on with the state of another program:\n%s", program.application_id, plan)
    return Joining(topology_epoch(program, group), plan.programs)


# Topics --------------------------------------------------------------------------------------------------------------


def _check_copartitioned(subtopology: CompiledSubtopology, topics: Mapping[str, TopicInfo]) -> None:
    counts = {name: len(topics[name].partitions) for name in subtopology.copartitioned if name in topics}
    if isinstance(subtopology.input, RowsInput) and subtopology.input.partitions:
        counts = {subtopology.input.topic: subtopology.input.partitions, **counts}
    if len(set(counts.values())) <= 1:
        return
    first, *others = counts
    other = next(name for name in others if counts[name] != counts[first])
    listed = ", ".join(f"{name} has {number}" for name, number in counts.items())
    if isinstance(subtopology.input, SidesInput):
        remedy = (
            f"create {other!r} with {counts[first]} partitions, or leave repartition=False out of join_stream(…): "
            f"both go through a topic then"
        )
    elif isinstance(subtopology.input, RowsInput):
        remedy = "leave partitions= out of .repartition(…): its topic gets as many as the table's"
    else:
        remedy = (
            f"create {other!r} with {counts[first]} partitions, or make the table an app.global_table, or put "
            f".repartition(…) before the join: its topic gets as many partitions as the table's"
        )
    raise ProgramError(f"topics that are joined need equally many partitions, but {listed}: {remedy}")


# The group -----------------------------------------------------------------------------------------------------------


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
    if group.topology is None or not group.members or same_topology(program, group):
        return
    difference = _difference(group.topology.required_topics, program.topology.required_topics)
    raise ProgramError(
        f"the group {name!r} runs another topology under this application_id: {difference}. Stop its instances before "
        f"you start the changed program; app.plan_upgrade() says what it goes on with then"
    )


def _protocol_of(group: GroupDescription) -> GroupProtocol | None:
    """Returns by which protocol streams applications are in a group; None for other groups."""
    if group.type == "streams":
        return "streams"
    return "classic" if group.type == "classic" and group.protocol_type == PROTOCOL_TYPE else None


def _difference(theirs: frozenset[str], ours: frozenset[str]) -> str:
    gone, new = sorted(theirs - ours), sorted(ours - theirs)
    differences = []
    if gone:
        differences.append(f"it has {', '.join(gone)}, which this program hasn't")
    if new:
        differences.append(f"this program has {', '.join(new)}, which it hasn't")
    return "; ".join(differences) or "the same topics are in other sub-topologies (compare app.describe())"


async def _committed(admin: Admin, program: Program, *, wait: bool) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """What the group has committed. If it has members: they may be this program's, which commit when they start."""
    committed = await committed_offsets(admin, program.application_id)
    left_s = _COMMIT_S if wait else 0.0
    while left_s > 0 and _others(committed) and not _has_committed(program, committed):
        await asyncio.sleep(_LOOK_S)
        left_s -= _LOOK_S
        committed = await committed_offsets(admin, program.application_id)
    return committed


def _others(committed: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    return any(committed_by(each.metadata) is not None for each in committed.values())


def _has_committed(program: Program, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    said = (committed_by(each.metadata) for each in committed.values())
    return any(each is not None and each.program == program.fingerprint for each in said)


def _check_plan(plan: UpgradePlan, *, ours: bool) -> None:
    """A program goes on with what another has left, as far as that can be, once that has stopped.

    Args:
        ours: whether instances of the program have committed already, so that it is they who run.
    """
    name = plan.application_id
    if plan.refused:
        more = "" if len(plan.refused) == 1 else f" (and {len(plan.refused) - 1} more: see app.plan_upgrade())"
        raise ProgramError(
            f"another program has committed under the application_id {name!r}: {plan.sentence(plan.refused[0])}{more}. "
            f"Or give the program another application_id, which begins from nothing; kohort apps reset {name} "
            f"--state-dir STATE_DIR removes all of this one"
        )
    if plan.programs and plan.members and not ours:
        raise ProgramError(
            f"instances of another program run under the application_id {name!r}, and this one would go on with their "
            f"state: stop them first. app.plan_upgrade() says what it goes on with then"
        )


def _compare_expressions(program: Program, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    ours = {topic for subtopology in program.subtopologies for topic in subtopology.input_topics}
    digests = expression_digests(program.subtopologies)
    formats = {topic: each for part in program.subtopologies for topic, each in store_formats(part).items()}
    changed: set[str] = set()
    for partition, offset in committed.items():
        said = committed_by(offset.metadata)
        if partition.topic not in ours or said is None:
            continue
        if said.program != program.fingerprint:
            for store, now in formats.get(partition.topic, {}).items():
                if before := (said.formats or {}).get(store):
                    changed.update(f"{store}.{name}" for name in other_expressions(before, now))
            continue
        pairs = zip(digests.items(), said.program.expressions, strict=False)
        changed.update(name for (name, printed), known in pairs if printed != known)
    if changed:
        log.warning(
            "%s: the expressions of %s aren't those that the state was made with, and it is used all the same. If you "
            "changed what they mean, give the program another application_id, and, so that no other instance goes on "
            "with this state, an aggregation(…) or a class of your own a new version. If they mean the same, or only "
            "Spark prints them otherwise, nothing needs to be done",
            program.application_id,
            ", ".join(sorted(changed)),
        )
