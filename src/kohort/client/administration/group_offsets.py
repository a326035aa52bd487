"""The offsets that groups have committed, as an admin sees and changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.administration.groups import BY_COORDINATOR, Groups
from kohort.client.administration.many_offsets import Committed, fetch_many, offsets_of
from kohort.client.administration.node_lookup import any_node, metadata, topic_error
from kohort.client.administration.offsets import Offsets, OffsetSpec
from kohort.client.administration.request_router import (
    Deadline,
    Failure,
    Node,
    Outcomes,
    RequestRouter,
    outcomes_of,
)
from kohort.client.administration.resets import PlannedReset, ResetTo, Where, plan
from kohort.client.administration.share_offsets import ShareOffset, alter_share, delete_share, fetch_share
from kohort.client.errors import PartialFailureError, raise_for
from kohort.client.membership.offset_requests import BY_NAME, commit_codes, commit_request
from kohort.client.types import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition, by_topic
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.share_in_flight import InFlight

V = TypeVar("V")

_BY_GROUP: Final = 8
"""The first version of OffsetFetch with groups."""

_ENDS_MS: Final = 5000
"""How long `lag` waits for ends (ms), so that a partition without a leader doesn't hold up the others."""

_INACTIVE: Final = frozenset({"Empty", "Dead", ""})
"""States of groups without members."""


class PartitionLag(NamedTuple):
    """A group's lag in a partition.

    Attributes:
        committed: the committed offset; None if there is none.
        end: the offset after the last record that consumers may read; None if the topic is gone.
        lag: records between these; None if one isn't known, but 0 where nothing is committed and there is nothing to
            read. Of a share group, records that aren't acknowledged.
        leader_epoch, metadata: what was committed with the offset.
        in_flight: of a share group, what became of records that were handed out; Kohort's brokers tell.
        first: the first offset there is, where nothing is committed; else None. Share groups' starts are the brokers'.
    """

    committed: int | None
    end: int | None
    lag: int | None
    leader_epoch: int = -1
    metadata: str = ""
    in_flight: tuple[InFlight, ...] = ()
    first: int | None = None

    @property
    def uncommitted(self) -> int | None:
        """Records of a partition that nothing is committed for; None if something is, or if they aren't known.

        A group that begins at the earliest has all of them to read, one that begins at the latest none.
        """
        if self.committed is not None or self.first is None or self.end is None:
            return None
        return max(0, self.end - self.first)


class GroupOffsets:
    """Groups' offsets: `Admin.group_offsets`. Errors and `timeout_ms` as in `Topics`.

    A share group's offsets are the start offsets of its share partitions (KIP-932).
    """

    def __init__(self, router: RequestRouter, groups: Groups, offsets: Offsets) -> None:
        self._router = router
        self._groups = groups
        self._offsets = offsets

    async def committed(
        self, group_id: str, *, require_stable: bool = False, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns a group's committed offsets, sorted by partition.

        Args:
            group_id: the group.
            require_stable: whether to wait for open transactions that commit offsets.
            timeout_ms: as everywhere.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, …
        """
        deadline = self._router.deadline(timeout_ms)
        kind = (await self._groups.types(group_id, timeout_ms=deadline.left_ms))[group_id]
        if kind is GroupType.SHARE:
            share = await self._at_coordinator(group_id, deadline, fetch_share)
            return {partition: OffsetAndMetadata(each.start, each.leader_epoch) for partition, each in share.items()}
        return await self._committed(group_id, deadline, require_stable)

    async def lag(
        self,
        group_id: str,
        *,
        partitions: Iterable[TopicPartition] = (),
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionLag]:
        """Returns a group's lag in each partition with a committed offset, and in `partitions`.

        A partition whose end isn't known within 5 s, since its leader has just died, has no end and no lag. One with
        records but without a committed offset has no lag either, since only the group's members know where they would
        begin; `PartitionLag.uncommitted` says how many records it has.
        """
        deadline = self._router.deadline(timeout_ms)
        kind = (await self._groups.types(group_id, timeout_ms=deadline.left_ms))[group_id]
        lags: dict[TopicPartition, int] = {}
        share: dict[TopicPartition, ShareOffset] = {}
        if kind is GroupType.SHARE:
            share = await self._at_coordinator(group_id, deadline, fetch_share)
            offsets = {at: OffsetAndMetadata(each.start, each.leader_epoch) for at, each in share.items()}
            lags = {at: each.lag for at, each in share.items() if each.lag >= 0}
        else:
            offsets = await self._committed(group_id, deadline)
        wanted = sorted({*offsets, *partitions})
        unread = [at for at in wanted if at not in offsets]
        ends, firsts = await asyncio.gather(
            self._ends(wanted, deadline, isolation_level), self._look_up(unread, OffsetSpec.EARLIEST, deadline)
        )
        found = {
            at: _partition_lag(
                offsets.get(at), ends.get(at), lags.get(at), share[at].in_flight if at in share else (), firsts.get(at)
            )
            for at in wanted
        }
        return {at: lag._replace(first=None) for at, lag in found.items()} if kind is GroupType.SHARE else found

    async def lag_of_groups(
        self,
        types: Mapping[str, GroupType],
        *,
        partitions: Mapping[str, Iterable[TopicPartition]] | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, dict[TopicPartition, PartitionLag]]:
        """Returns the lag of many groups, as `lag`, with few requests.

        Groups whose offsets can't be had are left out, since they may be gone by now. A streams group's ends are those
        of committed records.

        Args:
            types: the groups, with their types as `Groups.list` says them.
            partitions: of a group, beside those with a committed offset.
            timeout_ms: as everywhere.
        """
        deadline = self._router.deadline(timeout_ms)

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, Committed | Failure]:
            return await fetch_many(node, some, types)

        known = [group_id for group_id, kind in types.items() if kind is not GroupType.UNKNOWN]
        committed: Outcomes[str, Committed] = await self._router.ask_nodes(known, BY_COORDINATOR, ask, deadline)
        more = partitions or {}
        wanted = {group_id: sorted({*some, *more.get(group_id, ())}) for group_id, some in committed.items()}
        at_level: dict[str, set[TopicPartition]] = {"read_uncommitted": set(), "read_committed": set()}
        unread: set[TopicPartition] = set()
        for group_id, some in wanted.items():
            at_level[_isolation(types[group_id])].update(some)
            unread.update(at for at in some if at not in committed[group_id])
        firsts, *found = await asyncio.gather(
            self._look_up(sorted(unread), OffsetSpec.EARLIEST, deadline),
            *(self._ends(sorted(some), deadline, level) for level, some in at_level.items()),
        )
        ends = dict(zip(at_level, found, strict=True))

        def lag(group_id: str, at: TopicPartition) -> PartitionLag:
            kind, offset = types[group_id], committed[group_id].get(at)
            found = _lag_of(offset, ends[_isolation(kind)].get(at), firsts.get(at) if offset is None else None)
            return found._replace(first=None) if kind is GroupType.SHARE else found

        return {group_id: {at: lag(group_id, at) for at in some} for group_id, some in wanted.items()}

    async def _ends(
        self, partitions: Iterable[TopicPartition], deadline: Deadline, isolation_level: str
    ) -> Mapping[TopicPartition, OffsetAndTimestamp]:
        return await self._look_up(partitions, OffsetSpec.LATEST, deadline, isolation_level)

    async def _look_up(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        deadline: Deadline,
        isolation_level: str = "read_uncommitted",
    ) -> Mapping[TopicPartition, OffsetAndTimestamp]:
        soon = Deadline(min(deadline.left_ms, _ENDS_MS))
        return await self._offsets.look_up(dict.fromkeys(partitions, spec), soon, isolation_level, unknown_ms=0)

    async def alter(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits offsets for a group without members. A missing group is created.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID or NON_EMPTY_GROUP if the group has members.
        """
        deadline = self._router.deadline(timeout_ms)
        kind = await self._type(group_id, deadline)
        commits = {at: OffsetAndMetadata(to) if isinstance(to, int) else to for at, to in offsets.items()}
        if kind is GroupType.SHARE:
            work = partial(alter_share, starts={at: to.offset for at, to in commits.items()})
        else:
            work = partial(_commit, offsets=commits)
        (await self._at_coordinator(group_id, deadline, work)).checked()

    async def delete(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> None:
        """Deletes a group's committed offsets of partitions; a share group's of whole topics.

        Raises:
            KafkaError: GROUP_SUBSCRIBED_TO_TOPIC for topics that members read.
        """
        deadline = self._router.deadline(timeout_ms)
        kind = await self._type(group_id, deadline)
        work = partial(delete_share if kind is GroupType.SHARE else _delete, partitions=[*partitions])
        (await self._at_coordinator(group_id, deadline, work)).checked()

    async def reset(
        self,
        group_id: str,
        to: ResetTo,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        topics: Iterable[str] = (),
        dry_run: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PlannedReset]:
        """Resets a group's offsets, or returns where they would go.

        Args:
            group_id: the group. Except for a dry run, all of its members must be stopped; a missing group is created.
            to: the target, such as `ResetTo.earliest()` or `ResetTo.time(1_700_000_000_000)`.
            partitions, topics: to reset; by default all partitions with committed offsets.
            dry_run: only returns the plan.
            timeout_ms: as everywhere.

        Raises:
            ResetError: a shift where nothing is committed.
            KafkaError: NON_EMPTY_GROUP while it has members, unless it is a dry run; UNKNOWN_TOPIC_OR_PARTITION;
                GROUP_ID_NOT_FOUND if no partition is given and the group has none.
            PartialFailureError: some partitions can't be looked up, and nothing is changed; or some weren't reset.
        """
        topics = [*topics]
        if to.where is Where.OFFSETS and (topics or partitions is not None):
            raise ValueError("an offset for each partition says which partitions; leave out topics and partitions")
        deadline = self._router.deadline(timeout_ms)
        named = {*(partitions or ()), *to.offsets}
        everything = partitions is None and not topics and to.where is not Where.OFFSETS
        try:
            planned = await self._plan(group_id, to, named, topics, everything, dry_run, deadline)
        except PartialFailureError as error:
            raise PartialFailureError({}, error.errors) from None  # nothing is changed
        if not dry_run and planned:
            changes = {at: each.after for at, each in planned.items()}
            await self.alter(group_id, changes, timeout_ms=deadline.left_ms)
        return planned

    async def _plan(
        self,
        group_id: str,
        to: ResetTo,
        named: Collection[TopicPartition],
        topics: Collection[str],
        everything: bool,
        dry_run: bool,
        deadline: Deadline,
    ) -> dict[TopicPartition, PlannedReset]:
        """Plans a reset of named partitions, those of topics, and with `everything` all with committed offsets."""
        chosen = set(named)
        committed: dict[TopicPartition, int] = {}
        try:
            group = (await self._groups.describe(group_id, timeout_ms=deadline.left_ms))[group_id]
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND or not (chosen or topics):
                raise
        else:
            if not dry_run and group.state not in _INACTIVE:
                raise _active(group)
            now = await self.committed(group_id, timeout_ms=deadline.left_ms)
            committed = {at: each.offset for at, each in now.items()}
        found_topics = await self._router.ask_nodes(
            topics, any_node, partial(_partitions, self._router, deadline), deadline
        )
        chosen.update(at for several in found_topics.checked().values() for at in several)
        if everything:
            chosen.update(committed)
        ends = await self._offsets.ends(sorted(chosen), timeout_ms=deadline.left_ms)
        found: dict[TopicPartition, int] = {}
        if to.where is Where.TIME:
            times = await self._offsets.list(dict.fromkeys(ends, to.value), timeout_ms=deadline.left_ms)
            found = {at: each.offset for at, each in times.items()}
        return plan(to, committed, ends, found)

    async def _type(self, group_id: str, deadline: Deadline) -> GroupType:
        """Returns the type of a group; a missing one will be classic."""
        try:
            return (await self._groups.types(group_id, timeout_ms=deadline.left_ms))[group_id]
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return GroupType.CLASSIC

    async def _committed(
        self, group_id: str, deadline: Deadline, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return await self._at_coordinator(group_id, deadline, partial(_fetch, require_stable=require_stable))

    async def _at_coordinator(self, group_id: str, deadline: Deadline, work: Callable[[Node, str], Awaitable[V]]) -> V:
        """Returns the result of `work` at the group's coordinator."""

        async def ask(node: Node, keys: Sequence[str]) -> Mapping[str, V]:
            return {group_id: await work(node, group_id)}

        found: Outcomes[str, V] = await self._router.ask_nodes([group_id], BY_COORDINATOR, ask, deadline)
        return found.checked()[group_id]


def _isolation(kind: GroupType) -> str:
    """Streams applications read committed records only: their lag ends where an open transaction begins, too."""
    return "read_committed" if kind is GroupType.STREAMS else "read_uncommitted"


def _lag_of(
    offset: OffsetAndMetadata | ShareOffset | None,
    end: OffsetAndTimestamp | None,
    first: OffsetAndTimestamp | None,
) -> PartitionLag:
    if not isinstance(offset, ShareOffset):
        return _partition_lag(offset, end, first=first)
    told = offset.lag if offset.lag >= 0 else None
    return _partition_lag(OffsetAndMetadata(offset.start, offset.leader_epoch), end, told, offset.in_flight)


def _partition_lag(
    committed: OffsetAndMetadata | None,
    end: OffsetAndTimestamp | None,
    lag: int | None = None,
    in_flight: tuple[InFlight, ...] = (),
    first: OffsetAndTimestamp | None = None,
) -> PartitionLag:
    if lag is None and committed is not None and end is not None:
        lag = max(0, end.offset - committed.offset)
    if lag is None and committed is None and first is not None and end is not None and end.offset <= first.offset:
        lag = 0  # wherever the group would begin
    return PartitionLag(
        None if committed is None else committed.offset,
        None if end is None else end.offset,
        lag,
        -1 if committed is None else committed.leader_epoch,
        "" if committed is None else committed.metadata,
        in_flight,
        None if first is None else first.offset,
    )


def _active(group: GroupDescription) -> KafkaError:
    count = len(group.members)
    who = "its member" if count == 1 else f"its {count} members"
    message = f"group {group.group_id} is {group.state}; stop {who} first"
    if any(member.instance_id is not None for member in group.members):
        message += ", and remove static ones that are gone"
    return KafkaError(ErrorCode.NON_EMPTY_GROUP, message)


async def _partitions(
    router: RequestRouter, deadline: Deadline, node: Node, topics: Sequence[str]
) -> Mapping[str, list[TopicPartition] | Failure]:
    answer = await metadata(router, topics, deadline)
    return {
        topic.name or "": (
            topic_error(topic)
            if topic.error_code
            else [TopicPartition(topic.name or "", each.partition_index) for each in topic.partitions]
        )
        for topic in answer.topics
    }


async def _fetch(node: Node, group_id: str, *, require_stable: bool) -> dict[TopicPartition, OffsetAndMetadata]:
    version = node.version(OffsetFetchRequest, BY_NAME)  # users don't know a deleted topic by its id
    group: OffsetFetchResponse | OffsetFetchResponse.Group
    if version >= _BY_GROUP:
        groups = [OffsetFetchRequest.Group(group_id=group_id, topics=None)]
        request = OffsetFetchRequest(groups=groups, require_stable=require_stable)
        group = (await node.ask(request, OffsetFetchResponse, version)).groups[0]
    else:
        request = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=require_stable)
        group = await node.ask(request, OffsetFetchResponse, version)
    return offsets_of(group)


async def _commit(
    node: Node, group_id: str, *, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Outcomes[TopicPartition, None]:
    request = commit_request(offsets, GroupMetadata(group_id, -1, ""), {})
    answer = await node.ask(request, OffsetCommitResponse, node.version(OffsetCommitRequest, BY_NAME))
    return outcomes_of((partition, code, None) for partition, code in commit_codes(answer, offsets, {}).items())


async def _delete(node: Node, group_id: str, *, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, None]:
    kind = OffsetDeleteRequest.Topic
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            kind(name=topic, partitions=[kind.Partition(partition_index=number) for number in numbers])
            for topic, numbers in by_topic(partitions).items()
        ],
    )
    answer = await node.ask(request, OffsetDeleteResponse)
    raise_for(answer.error_code)
    return outcomes_of(
        (TopicPartition(topic.name, each.partition_index), each.error_code, None)
        for topic in answer.topics
        for each in topic.partitions
    )
