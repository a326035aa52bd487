"""Groups of every type: list, describe, delete, remove members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from kohort.client.administration import group_descriptions
from kohort.client.administration.group_types import GroupDescription, GroupListing, GroupMember, GroupType
from kohort.client.administration.member_removal import MemberToRemove, remove
from kohort.client.administration.node_lookup import ask_all_brokers, coordinators
from kohort.client.administration.request_router import Deadline, Failure, Node, Outcomes, RequestRouter
from kohort.client.errors import UnsupportedError, kafka_error, raise_for
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages import consumer_group_describe as consumer
from kohort.protocol.messages import share_group_describe as share
from kohort.protocol.messages import streams_group_describe as streams
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kohort.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

_STATES, _TYPES = 4, 5
"""The first versions of ListGroups that filter by state and by type."""

BY_COORDINATOR = coordinators(CoordinatorKind.GROUP)


class Groups:
    """Groups: `Admin.groups`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def list(
        self,
        *,
        types: Iterable[GroupType | str] = (),
        states: Iterable[str] = (),
        protocol_types: Iterable[str] | None = None,
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """Returns the groups of all brokers, sorted by name.

        Args:
            types, states: only groups of these types, in these states; none for all.
            protocol_types: only groups of these, such as "consumer"; "" for groups with offsets only.
            timeout_ms: as everywhere.
        """
        wanted = frozenset(GroupType(each) for each in types)
        in_states = {state.lower(): state for state in states}
        deadline = self._router.deadline(timeout_ms)

        async def ask(node: Node, nodes: Sequence[int]) -> Mapping[int, list[GroupListing]]:
            return dict.fromkeys(nodes, await _listed(node, wanted, in_states.values()))

        listed = await ask_all_brokers(self._router, ask, deadline)
        kinds = None if protocol_types is None else frozenset(protocol_types)
        return sorted(
            group
            for groups in listed.values()
            for group in groups
            if (not wanted or group.type in wanted)
            and (not in_states or group.state.lower() in in_states)
            and (kinds is None or group.protocol_type in kinds)
        )

    async def types(self, *group_ids: str, timeout_ms: int | None = None) -> dict[str, GroupType]:
        """Returns the type of each group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, GroupType | Failure]:
            listed = {group.group_id: group.type for group in await _listed(node)}
            return {group_id: listed.get(group_id, _no_group(group_id)) for group_id in some}

        deadline = self._router.deadline(timeout_ms)
        return (await self._router.ask_nodes(group_ids, BY_COORDINATOR, ask, deadline)).checked()

    async def describe(
        self, *group_ids: str, types: Mapping[str, GroupType] | None = None, timeout_ms: int | None = None
    ) -> dict[str, GroupDescription]:
        """Returns groups of any type, with their members and these members' assignments.

        Args:
            group_ids: the groups.
            types: their types, where `list` has just said them; None asks their coordinators once more.
            timeout_ms: as everywhere.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, …
        """

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, GroupDescription | Failure]:
            return await (_describe(node, some) if types is None else _describe_as(node, some, types))

        return (await self._router.ask_nodes(group_ids, BY_COORDINATOR, ask, self._deadline(timeout_ms))).checked()

    async def delete(self, *group_ids: str, timeout_ms: int | None = None) -> None:
        """Delete groups that have no members, with their offsets.

        Raises:
            KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, …
        """

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, Failure | None]:
            answer = await node.ask(DeleteGroupsRequest(groups_names=tuple(some)), DeleteGroupsResponse)
            return {each.group_id: kafka_error(each.error_code) if each.error_code else None for each in answer.results}

        (await self._router.ask_nodes(group_ids, BY_COORDINATOR, ask, self._deadline(timeout_ms))).checked()

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | None = None,
        *,
        reason: str = "removed by an admin",
        timeout_ms: int | None = None,
    ) -> tuple[MemberToRemove, ...]:
        """Removes members from a group; those alive come back when they notice.

        Args:
            group_id: the group.
            members: to remove; None for all.
            reason: for the broker's log.
            timeout_ms: as everywhere.

        Returns:
            the removed members.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID for the only one.
            PartialFailureError: some of several couldn't be removed.
        """
        deadline = self._deadline(timeout_ms)
        wanted = None if members is None else [*members]

        async def ask(
            node: Node, keys: Sequence[str]
        ) -> Mapping[str, Mapping[MemberToRemove, Failure | None] | Failure]:
            group = (await _describe(node, keys))[group_id]
            if not isinstance(group, GroupDescription):
                return {group_id: group}
            some = [_to_remove(member) for member in group.members] if wanted is None else wanted
            return {group_id: await remove(node, group, some, reason) if some else {}}

        found = (await self._router.ask_nodes([group_id], BY_COORDINATOR, ask, deadline)).checked()[group_id]
        outcomes: Outcomes[MemberToRemove, None] = Outcomes()
        for member, failure in found.items():
            if failure is None:
                outcomes[member] = None
            else:
                outcomes.failed[member] = failure
        return tuple(outcomes.checked())

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        return self._router.deadline(timeout_ms)


async def _listed(node: Node, types: Iterable[GroupType] = (), states: Iterable[str] = ()) -> list[GroupListing]:
    """Returns the groups that a broker coordinates; older brokers don't filter, so the caller must, too."""
    version = node.version(ListGroupsRequest)
    request = ListGroupsRequest(
        states_filter=tuple(states) if version >= _STATES else (),
        types_filter=tuple(types) if version >= _TYPES else (),
    )
    answer = await node.ask(request, ListGroupsResponse)
    raise_for(answer.error_code)
    return [
        GroupListing(
            each.group_id,
            GroupType.of(each.group_type),
            each.group_state,
            each.protocol_type,
            node.broker.node_id,
        )
        for each in answer.groups
    ]


async def _describe(node: Node, group_ids: Sequence[str]) -> Mapping[str, GroupDescription | Failure]:
    """Describes groups at their coordinator, each by the API of its type."""
    return await _describe_as(node, group_ids, {group.group_id: group.type for group in await _listed(node)})


async def _describe_as(
    node: Node, group_ids: Sequence[str], types: Mapping[str, GroupType]
) -> Mapping[str, GroupDescription | Failure]:
    """Describes groups whose types are known; others aren't there."""
    found: dict[str, GroupDescription | Failure] = {each: _no_group(each) for each in group_ids if each not in types}
    for kind in GroupType:
        some = tuple(group_id for group_id in group_ids if types.get(group_id) is kind)
        if some:
            found |= await _DESCRIBE[kind](node, some)
    return found


async def _describe_classic(node: Node, some: tuple[str, ...]) -> dict[str, GroupDescription | Failure]:
    answer = await node.ask(DescribeGroupsRequest(groups=some), DescribeGroupsResponse)
    return _translated(answer.groups, group_descriptions.classic_group, node.broker)


async def _describe_consumer(node: Node, some: tuple[str, ...]) -> dict[str, GroupDescription | Failure]:
    request = consumer.ConsumerGroupDescribeRequest(group_ids=some)
    answer = await node.ask(request, consumer.ConsumerGroupDescribeResponse)
    return _translated(answer.groups, group_descriptions.consumer_group, node.broker)


async def _describe_share(node: Node, some: tuple[str, ...]) -> dict[str, GroupDescription | Failure]:
    answer = await node.ask(share.ShareGroupDescribeRequest(group_ids=some), share.ShareGroupDescribeResponse)
    return _translated(answer.groups, group_descriptions.share_group, node.broker)


async def _describe_streams(node: Node, some: tuple[str, ...]) -> dict[str, GroupDescription | Failure]:
    answer = await node.ask(streams.StreamsGroupDescribeRequest(group_ids=some), streams.StreamsGroupDescribeResponse)
    return _translated(answer.groups, group_descriptions.streams_group, node.broker)


async def _describe_unknown(node: Node, some: tuple[str, ...]) -> dict[str, GroupDescription | Failure]:
    return {group_id: UnsupportedError(f"{group_id} is of a type that Kohort doesn't know") for group_id in some}


_DESCRIBE: Final[
    dict[GroupType, Callable[[Node, tuple[str, ...]], Awaitable[dict[str, GroupDescription | Failure]]]]
] = {
    GroupType.CLASSIC: _describe_classic,
    GroupType.CONSUMER: _describe_consumer,
    GroupType.SHARE: _describe_share,
    GroupType.STREAMS: _describe_streams,
    GroupType.UNKNOWN: _describe_unknown,
}


class _Described(Protocol):
    """The fields that the four APIs' groups share."""

    group_id: str
    error_code: int
    error_message: str | None


G = TypeVar("G", bound=_Described)


def _translated(
    groups: Iterable[G], translate: Callable[[G, Broker], GroupDescription], coordinator: Broker
) -> dict[str, GroupDescription | Failure]:
    return {
        group.group_id: (
            kafka_error(group.error_code, group.error_message) if group.error_code else translate(group, coordinator)
        )
        for group in groups
    }


def _no_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")


def _to_remove(member: GroupMember) -> MemberToRemove:
    return MemberToRemove(member.member_id, member.instance_id)
