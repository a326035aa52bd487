"""What a changed program goes on with: compared with what its group has committed, and with the topics there are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.client.errors import PartialFailureError
from kohort.client.types import OffsetAndMetadata, TopicInfo, TopicPartition
from kohort.plurals import several
from kohort.protocol.errors import KafkaError
from kohort.spark.program.cluster_reading import committed_offsets, described_group
from kohort.spark.program.committed_metadata import committed_by, metadata, noted
from kohort.spark.program.compiled import Program
from kohort.spark.program.format_digests import store_formats
from kohort.spark.program.operations import StreamJoin
from kohort.spark.program.source_topics import matched_topics, with_topics
from kohort.spark.program.store_formats import StoreFormats, carried
from kohort.spark.program.topology_epochs import same_topology
from kohort.spark.program.upgrade_rules import UNKNOWN, Fate, StoreChange, StoresNow, store_changes

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupDescription
    from kohort.client.config import ClientConfig

log = logging.getLogger(__name__)

_INTERNAL: Final = ("-changelog", "-repartition")


@dataclass(frozen=True)
class TopicChange:
    """An internal topic.

    Attributes:
        topic: its name.
        fate: kept, new or left.
        unread: how many records are left in a repartition topic.
    """

    topic: str
    fate: Fate
    unread: int = 0


@dataclass(frozen=True)
class SourceChange:
    """A topic of the user's that the program reads, or read.

    Attributes:
        topic: its name.
        fate: kept: read on from what is committed; rebuilt: read again from its beginning; new: nothing is committed;
            left: the program doesn't read it any more.
        begins: where it begins, if it is new: "earliest" or "latest".
    """

    topic: str
    fate: Fate
    begins: str = ""


@dataclass(frozen=True)
class UpgradePlan:
    """What becomes of an application's state when a program takes it over. Printed, it is a table.

    Attributes:
        application_id: the group's.
        stores, topics, sources: each with what becomes of it.
        members: how many instances run.
        topology_changed: whether the group has to take another topology.
        programs: the fingerprints of other programs that have committed here.
    """

    application_id: str
    stores: tuple[StoreChange, ...]
    topics: tuple[TopicChange, ...]
    sources: tuple[SourceChange, ...]
    members: int
    topology_changed: bool
    programs: tuple[str, ...]

    @property
    def refused(self) -> tuple[StoreChange, ...]:
        """What keeps the program from going on."""
        return tuple(each for each in self.stores if each.fate is Fate.REFUSED)

    @property
    def changed(self) -> bool:
        """Whether it is another program than the one before."""
        return bool(self.programs) or self.topology_changed

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """What, its name, what becomes of it, and what there is to say."""
        found = [("store", each.store, each.fate.value, self._about_store(each)) for each in self.stores]
        found += [
            ("source", each.topic, each.fate.value, f"begins at the {each.begins} record" if each.begins else "")
            for each in self.sources
        ]
        return found + [("topic", each.topic, each.fate.value, _about_topic(each)) for each in self.topics]

    @property
    def remarks(self) -> list[str]:
        """What has to be done, as sentences."""
        said = []
        if self.changed and self.members:
            running = "1 instance runs" if self.members == 1 else f"{self.members} instances run"
            said.append(f"{running}: stop all before you start the changed program")
        said += [self.sentence(each) for each in self.refused]
        left = [each.topic for each in self.topics if each.fate is Fate.LEFT]
        if left:
            said.append(f"what is left isn't deleted. If nobody needs it: kohort topics delete {' '.join(left)}")
        return said

    def sentence(self, change: StoreChange) -> str:
        """Why a store is refused, and the ways out."""
        if change.store == change.topic:
            return f"repartition topic {change.topic}: {change.why}"
        name = self.application_id
        if change.why == UNKNOWN:
            return (
                f"store {change.store!r} can't go on: {change.why}. Run the program that committed them once more, "
                f"with this version of Kohort, which notes it; where that is too long to be noted, only a full reset "
                f"helps (kohort apps reset {name}), or another application_id"
            )
        return (
            f"store {change.store!r} can't go on: {change.why}. Give it another name in the program; or have it begin "
            f"from nothing: kohort apps reset {name} --store {change.store}"
        )

    def __str__(self) -> str:
        rows = [("", "name", "becomes", ""), *self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows]
        return "\n".join([*lines, *self.remarks])

    def _about_store(self, change: StoreChange) -> str:
        if change.fate is not Fate.LEFT:
            return change.why
        return f"made of {change.topic}; kohort apps reset {self.application_id} --store {change.store} deletes it"


def plan_of(program: Program, servers: ClientConfig) -> UpgradePlan:
    """The plan for a program's own cluster, from any thread. Raises as `read_plan`."""

    async def work() -> UpgradePlan:
        from kohort.client.admin import Admin

        async with Admin(servers) as admin:
            return await read_plan(admin, program)

    with ThreadPoolExecutor(1) as thread:  # a notebook's thread has a loop already
        return thread.submit(asyncio.run, work()).result()


async def read_plan(admin: Admin, program: Program) -> UpgradePlan:
    """Compares a program with what its group has left. Changes nothing.

    Raises:
        KafkaError, ClientError: the cluster can't be asked.
    """
    topics = await admin.topics.list(internal=True)
    there = [name for name, each in topics.items() if not each.internal]
    program = with_topics(program, matched_topics(program, there))
    group = await described_group(admin, program.application_id)
    committed = await committed_offsets(admin, program.application_id)
    return await upgrade_plan(admin, program, group, committed, topics)


async def upgrade_plan(
    admin: Admin,
    program: Program,
    group: GroupDescription | None,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    topics: Mapping[str, TopicInfo],
) -> UpgradePlan:
    """The same, where what else there is was read already. Raises as `read_plan`.

    Args:
        group: None if there is none.
        committed: what it has committed.
        topics: those of the cluster.
    """
    ends = await _ends(admin, program, topics)
    formats: dict[str, StoreFormats] = {}
    for subtopology in program.subtopologies:
        formats |= store_formats(subtopology)
    said = {(at.topic, at.partition): committed_by(each.metadata) for at, each in committed.items()}
    changelogs = {store.name: store.changelog for each in program.subtopologies for store in each.stores}
    unread = _unread(committed, ends)
    now = StoresNow(
        program.fingerprint,
        formats,
        tables={table.name for each in program.subtopologies for table in each.tables},
        filled={name for name, topic in changelogs.items() if _has_records(topic, ends)},
        pending=unread,
        of_joins={
            store.name
            for each in program.subtopologies
            if any(isinstance(step.operation, StreamJoin) for step in each.processors)
            for store in each.stores
        },
    )
    stores = tuple(store_changes(now, said))
    before = {each.program.text for (topic, _), each in said.items() if each is not None and topic in formats}
    return UpgradePlan(
        application_id=program.application_id,
        stores=stores,
        topics=tuple(_topics(program, group, stores, topics, unread)),
        sources=tuple(_sources(program, stores, {topic for topic, _ in said})),
        members=0 if group is None else len(group.members),
        topology_changed=group is not None and group.topology is not None and not same_topology(program, group),
        programs=tuple(sorted(before - {program.fingerprint.text})),
    )


def _topics(
    program: Program,
    group: GroupDescription | None,
    stores: Iterable[StoreChange],
    topics: Collection[str],
    unread: Mapping[str, int],
) -> Iterable[TopicChange]:
    ours = set(program.internal_topics)
    theirs: set[str] = set()
    if group is not None and group.topology is not None:
        theirs |= group.topology.internal_topics
    for each in stores:
        if each.fate is Fate.LEFT:
            theirs.add(f"{program.application_id}-{each.store}-changelog")
            if _is_internal(program, each.topic):
                theirs.add(each.topic)
    for topic in program.internal_topics:
        yield TopicChange(topic, Fate.KEPT if topic in topics else Fate.NEW, unread.get(topic, 0))
    for topic in sorted((theirs - ours) & set(topics)):
        yield TopicChange(topic, Fate.LEFT, unread.get(topic, 0))


def _sources(program: Program, stores: Iterable[StoreChange], read: Collection[str]) -> Iterable[SourceChange]:
    again = {each.topic for each in stores if each.fate is Fate.REBUILT}
    tables = {table.source.topic for each in program.subtopologies for table in each.tables}
    again |= {each.topic for each in stores if each.fate is Fate.NEW and each.topic in tables & set(read)}
    for subtopology in program.subtopologies:
        own = [each for source in subtopology.read for each in source.each()]
        for source in (*own, *(table.source for table in subtopology.tables)):
            if source.topic not in read:
                yield SourceChange(source.topic, Fate.NEW, source.offset_reset)
            else:
                yield SourceChange(source.topic, Fate.REBUILT if source.topic in again else Fate.KEPT)
    ours = {topic for each in program.subtopologies for topic in each.input_topics}
    for topic in sorted(set(read) - ours):
        if not _is_internal(program, topic):
            yield SourceChange(topic, Fate.LEFT)


def _is_internal(program: Program, topic: str) -> bool:
    return topic.startswith(f"{program.application_id}-") and topic.endswith(_INTERNAL)


def _about_topic(change: TopicChange) -> str:
    if not change.unread:
        return ""
    unread = f"{several(change.unread, 'record')} in it {'is' if change.unread == 1 else 'are'}n't read yet"
    return unread + (", and won't be" if change.fate is Fate.LEFT else "")


def _unread(
    committed: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, tuple[int, int]]
) -> dict[str, int]:
    """Records of repartition topics, by topic, that the group hasn't read."""
    found: dict[str, int] = {}
    for at, (first, end) in ends.items():
        if at.topic.endswith("-repartition"):
            was = committed.get(at)
            found[at.topic] = found.get(at.topic, 0) + max(0, end - (first if was is None else max(first, was.offset)))
    return found


def _has_records(topic: str, ends: Mapping[TopicPartition, tuple[int, int]]) -> bool:
    return any(end > first for at, (first, end) in ends.items() if at.topic == topic)


async def _ends(
    admin: Admin, program: Program, topics: Mapping[str, TopicInfo]
) -> dict[TopicPartition, tuple[int, int]]:
    """Of internal topics' partitions, the first offset and the one after the last."""
    prefix = f"{program.application_id}-"
    wanted = [
        TopicPartition(name, number)
        for name, info in topics.items()
        if name in program.internal_topics or (name.startswith(prefix) and name.endswith("-repartition"))
        for number in info.partitions
    ]
    return await admin.offsets.ends(wanted, isolation_level="read_committed") if wanted else {}


def without_readers(
    program: Program, committed: Mapping[TopicPartition, OffsetAndMetadata]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets of repartition topics that a program doesn't read, as they are once it has run: their stores are left.

    Other topics' stay as they are: a program that reads them again goes on where it was. But rows that would have gone
    to a repartition topic were never made.
    """
    ours = {topic for each in program.subtopologies for topic in each.input_topics}
    found = {}
    for at, each in committed.items():
        said = committed_by(each.metadata)
        if at.topic in ours or not _is_internal(program, at.topic) or said is None or not said.formats:
            continue
        if not all(store.left for store in said.formats.values()):
            left = noted(carried(said.formats, {}))
            found[at] = each._replace(metadata=metadata(said.stream_time, said.program, said.until, left))
    return found


async def mark_left(admin: Admin, program: Program) -> None:
    """Notes what stores a program leaves, before its first instance joins.

    Raises:
        KafkaError, ClientError: the cluster can't be asked.
    """
    changed = without_readers(program, await committed_offsets(admin, program.application_id))
    if changed:
        try:
            await admin.group_offsets.alter(program.application_id, changed)
        except (KafkaError, PartialFailureError) as error:
            log.info("what %s leaves is noted by the instance that joined first: %s", program.application_id, error)
