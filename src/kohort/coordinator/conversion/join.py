"""JoinGroup in a consumer group that has members: a classic consumer joins it, or joins again to move on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from kohort.coordinator.classic.group import CONSUMERS
from kohort.coordinator.classic.responses import join_refused
from kohort.coordinator.classic.settings import ClassicSettings
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.heartbeats import MemberUpdate
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.member_identity import Sender, takes_its_place
from kohort.coordinator.conversion.classic_metadata import classic_metadata, with_subscription
from kohort.coordinator.conversion.downgrade import may_downgrade
from kohort.coordinator.conversion.embedded_protocol import Subscription, decode_subscription
from kohort.coordinator.conversion.groups import ConvertibleGroups
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.coordinator.member_lines import tell_joined
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.member_identity import check_known, check_room
from kohort.coordinator.modern.partitions import ASSIGNED
from kohort.coordinator.refusals import LONGEST, Refusals
from kohort.coordinator.step import Answer, Client, Reply, Step
from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

log = logging.getLogger(__name__)

_MEMBER_ID_REQUIRED: Final = 4  # first version of JoinGroup in which a client gets its id before it joins (KIP-394)
_NAME_LENGTH: Final = 1024  # characters of a client's name in a member id, so that the id fits in a string field


class JoinSettings(ClassicSettings, Protocol):
    @property
    def migration_policy(self) -> MigrationPolicy: ...


class Joins:
    """Handles JoinGroup of classic consumers in consumer groups.

    Args:
        new_id: makes a member id from a client id, or from an instance id.
    """

    def __init__(
        self, groups: ConvertibleGroups, settings: JoinSettings, cluster: Cluster, new_id: Callable[[str], str]
    ) -> None:
        self._groups = groups
        self._settings = settings
        self._cluster = cluster
        self._new_id = new_id
        self._refusals = Refusals()

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """JoinGroup: takes in the subscription and what the member owns; answers with its epoch, at once."""
        try:
            return self._join(group, request, client, now, reply)
        except KafkaError as error:
            if self._refusals.is_news(now, group.group_id, client.client_id, error.code.name):
                why = (error.detail or error.code.name)[:LONGEST]
                named = group.group_id[:LONGEST], client.client_id[:LONGEST]
                log.info("join refused group=%s client=%s reason=%s", *named, why)
            return Step(answers=[Answer(reply, join_refused(error.code, "", client.version))])

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        protocols = {each.name: bytes(each.metadata) for each in request.protocols}
        draft = self._groups.begin(group, now)
        self._check(draft, request, protocols)
        instance_id = request.group_instance_id
        member_id = request.member_id
        if not member_id:
            member_id = self._new_id((client.client_id if instance_id is None else instance_id)[:_NAME_LENGTH])
            if instance_id is None and client.version >= _MEMBER_ID_REQUIRED:
                code = ErrorCode.MEMBER_ID_REQUIRED
                return Step(answers=[Answer(reply, join_refused(code, member_id, client.version))])
        subscription = self._subscription(next(iter(protocols.values())))
        replaced = None if instance_id is None else group.static_ids.get(instance_id)
        policy, size = self._settings.migration_policy, self._settings.group_max_size
        downgrades = replaced is not None and may_downgrade(draft, (replaced,), policy, size, joining=1)
        sender = _sender(draft, request, client, member_id)
        timeout = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
        metadata = replace(
            sender.metadata,
            instance_id=sender.metadata.instance_id if instance_id is None else instance_id,
            client_id=client.client_id,
            client_host=client.host,
            rebalance_timeout_ms=timeout,
            classic=classic_metadata(request.session_timeout_ms, protocols),
        )
        owned = dict.fromkeys(subscription.owned, ASSIGNED)
        update = MemberUpdate(member_id, client, sender, with_subscription(metadata, subscription), owned)
        current = self._groups.update(draft, update, assigns=not downgrades)
        if downgrades:
            settled = all(each.is_reconciled_to(draft.epoch) for _, each in draft.members().values())
            self._groups.downgrade(draft, now, None if settled else "its members had not reached the target")
        else:
            draft.then(self._groups.timeouts.joined, group.group_id, member_id, now + timeout)
        response = JoinGroupResponse(
            generation_id=current.epoch,
            protocol_type=CONSUMERS,
            protocol_name=next(iter(protocols)),
            leader="",
            member_id=member_id,
            members=[],
        )
        return self._groups.step(
            draft, reply, response, lambda code: join_refused(code, request.member_id, client.version)
        )

    def _check(self, draft: Draft, request: JoinGroupRequest, protocols: Iterable[str]) -> None:
        """Raises KafkaError if the request can't be one of a member, in Kafka's order."""
        least, most = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        if not least <= request.session_timeout_ms <= most:
            raise KafkaError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"The session timeout must be from {least} to {most} ms, not {request.session_timeout_ms} ms.",
            )
        if not self._settings.migration_policy.mixes:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                "group.consumer.migration.policy keeps members of the classic protocol out of consumer groups.",
            )
        check_room(draft.group, request.member_id, request.group_instance_id, draft.settings.max_size)
        if request.protocol_type != CONSUMERS or not draft.subscriptions.common_classic_assignors(protocols):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"None of the protocols of type {request.protocol_type!r} is supported by all classic members.",
            )

    def _subscription(self, metadata: bytes) -> Subscription:
        try:
            return decode_subscription(metadata, self._cluster)
        except ProtocolError as error:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"The subscription can't be read: {error}"
            ) from error


def _sender(draft: Draft, request: JoinGroupRequest, client: Client, member_id: str) -> Sender:
    """The member that joins: a new one, a known one, or the new self of a static one, of either protocol.

    A static member needn't have left: that it joins under a new id shows that its former self is gone (KIP-345).

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group, instance_id = draft.group, request.group_instance_id
    if instance_id is not None and request.member_id:
        check_known(group, member_id, instance_id)
    replaced = None if instance_id is None else group.static_ids.get(instance_id)
    if replaced is not None and replaced != member_id:
        return takes_its_place(draft, group.members[replaced], member_id)
    member = group.members.get(member_id)
    if member is None:
        tell_joined(group.group_id, member_id, instance_id, client.client_id, client.host)
        return Sender(ConsumerMetadata(), CurrentAssignment(), new=True)
    return Sender(member.metadata, member.current)
