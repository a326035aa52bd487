"""Validation of StreamsGroupHeartbeat requests, as far as the request itself shows what is wrong (KIP-1071)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from kohort.protocol.stored import INTERNAL_TOPICS
from kohort.streams.patterns import MAX_PATTERNS, check_pattern
from kohort.streams.topology import TopologyError, check_subtopologies
from kohort.streams.topology_messages import topology_of

_JOIN: Final = 0
_LEAVE_FOR_A_WHILE: Final = -2

_LEGAL_TOPIC: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
_MAX_TASKS: Final = 100_000
"""Most tasks in one heartbeat: more than a broker has files for. Each costs time and memory before it is known whether
there is such a task."""


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST, naming the field, if a field is missing or invalid.

    `check_topology` checks the topology. Stable members send next to nothing, and that costs next to nothing.
    """
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId must be null or not empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId must be null or not empty.")
    if request.process_id is not None and not request.process_id.strip():
        raise _invalid("ProcessId must be null or not empty.")
    epoch = request.member_epoch
    if epoch < _LEAVE_FOR_A_WHILE:
        raise _invalid(f"MemberEpoch is {epoch}; it must be -2 or more.")
    if epoch == _LEAVE_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("InstanceId must be given with MemberEpoch -2: only a static member can leave for a while.")
    if request.rebalance_timeout_ms <= 0 and request.rebalance_timeout_ms != -1:
        raise _invalid(f"RebalanceTimeoutMs is {request.rebalance_timeout_ms}; it must be more than 0, or -1.")
    if epoch == _JOIN:
        _check_join(request)
    elif request.topology is not None:
        raise _invalid("Topology must be null unless the member joins, with MemberEpoch 0.")
    if request.active_tasks is not None or request.standby_tasks is not None or request.warmup_tasks is not None:
        _check_tasks(request)
    if request.user_endpoint is not None:
        if not request.user_endpoint.host.strip():
            raise _invalid("UserEndpoint.Host must not be empty.")
        if request.user_endpoint.port == 0:
            raise _invalid("UserEndpoint.Port must not be 0.")
    if request.client_tags is not None:
        _check_tags(request.client_tags)
    if request.task_offsets is not None:
        _check_offsets("TaskOffsets", request.task_offsets)
    if request.task_end_offsets is not None:
        _check_offsets("TaskEndOffsets", request.task_end_offsets)


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be given when the member joins.")
    if request.topology is None:
        raise _invalid("Topology must be given when the member joins.")
    lists = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for field, tasks in lists:
        if tasks is None or tasks:
            raise _invalid(f"{field} must be an empty list when the member joins: it can't own tasks yet.")


def _check_tasks(request: StreamsGroupHeartbeatRequest) -> None:
    seen: set[tuple[str, int]] = set()
    lists = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for field, tasks in lists:
        if tasks is None:
            raise _invalid(f"{field} must be given if ActiveTasks, StandbyTasks or WarmupTasks is.")
        if len(seen) + sum(len(ids.partitions) for ids in tasks) > _MAX_TASKS:
            raise _invalid(f"{field}: a member can't have more than {_MAX_TASKS} tasks.")
        for subtopology, partition in _listed(tasks):
            if partition < 0:
                raise _invalid(f"{field}: partition {partition} of subtopology {shown(subtopology)} is negative.")
            if (subtopology, partition) in seen:
                raise _invalid(f"{field}: task {partition} of subtopology {shown(subtopology)} is listed twice.")
            seen.add((subtopology, partition))


def _listed(tasks: Iterable[TaskIds]) -> Iterable[tuple[str, int]]:
    return ((ids.subtopology_id, partition) for ids in tasks for partition in ids.partitions)


def _check_tags(tags: Iterable[KeyValue]) -> None:
    seen: set[str] = set()
    for tag in tags:
        if not tag.key:
            raise _invalid("ClientTags: a tag has no name.")
        if tag.key in seen:
            raise _invalid(f"ClientTags: tag {shown(tag.key)} is listed twice.")
        seen.add(tag.key)


def _check_offsets(field: str, offsets: Collection[TaskOffset]) -> None:
    """Negative offsets pass: Kafka Streams sends -2 for "at the end", and -4 for "unknown"."""
    if len(offsets) > _MAX_TASKS:
        raise _invalid(f"{field}: a member can't have more than {_MAX_TASKS} tasks.")
    seen: set[tuple[str, int]] = set()
    for each in offsets:
        task = (each.subtopology_id, each.partition)
        if each.partition < 0:
            raise _invalid(
                f"{field}: partition {each.partition} of subtopology {shown(each.subtopology_id)} is negative."
            )
        if task in seen:
            raise _invalid(
                f"{field}: task {each.partition} of subtopology {shown(each.subtopology_id)} is listed twice."
            )
        seen.add(task)


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


def check_topology(topology: StreamsGroupHeartbeatRequest.Topology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY for a topology that can't run, whatever topics exist.

    Each topic has one role in one subtopology, but that several may write to a repartition topic, and that a table's
    source topic may be its changelog as well. Kafka finds some of these errors only when it configures the topics.

    Raises:
        KafkaError: that, or STREAMS_INVALID_TOPOLOGY_EPOCH for a negative epoch.
    """
    if topology.epoch < 0:
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, f"Topology.Epoch is {topology.epoch}, less than 0.")
    roles = _Roles()
    for subtopology in topology.subtopologies:
        roles.add(subtopology)
    roles.check_repartition()
    try:
        check_subtopologies(topology_of(topology))
    except TopologyError as error:
        raise _bad(str(error)) from None


class _Roles:
    """Which topics are what, over the subtopologies of a topology."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._repartition: dict[str, TopicInfo] = {}
        self._changelogs: set[str] = set()
        self._sinks: set[str] = set()
        self._patterns = 0

    def add(self, subtopology: StreamsGroupHeartbeatRequest.Topology.Subtopology) -> None:
        """Checks a subtopology by itself, and against those before."""
        name = subtopology.subtopology_id
        where = f"Subtopology {shown(name)}"
        if name in self._ids:
            raise _bad(f"{where} is listed twice.")
        self._ids.add(name)
        repartition = [topic.name for topic in subtopology.repartition_source_topics]
        changelogs = [topic.name for topic in subtopology.state_changelog_topics]
        for topic in (*subtopology.source_topics, *repartition):
            _check_name(topic, where)
        for topic_info in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            _check_internal(topic_info, where)
        for topic in changelogs:
            _check_name(topic, where)
            if topic in self._changelogs:
                raise _bad(f"{where}: changelog {topic} is listed twice.")
            self._changelogs.add(topic)
        for topic in subtopology.repartition_sink_topics:
            _check_name(topic, where)
        self._sinks.update(subtopology.repartition_sink_topics)
        self._repartition.update({topic.name: topic for topic in subtopology.repartition_source_topics})
        self._check_patterns(subtopology.source_topic_regex, where)
        _check_copartition_groups(subtopology, where)

    def check_repartition(self) -> None:
        """Checks what needs all subtopologies."""
        for name, topic in self._repartition.items():
            if name in self._changelogs:
                raise _bad(f"Repartition topic {name} is a changelog as well.")
            if not topic.partitions and name not in self._sinks:
                raise _bad(f"Repartition topic {name} has no number of partitions, and no subtopology writes to it.")

    def _check_patterns(self, patterns: Iterable[str], where: str) -> None:
        for pattern in patterns:
            self._patterns += 1
            if self._patterns > MAX_PATTERNS:
                raise _bad(f"The topology has more than {MAX_PATTERNS} source patterns.")
            try:
                check_pattern(pattern)
            except ValueError as error:
                raise _bad(f"{where}: source pattern {shown(pattern)} can't be used: {error}.") from None


def _check_copartition_groups(subtopology: StreamsGroupHeartbeatRequest.Topology.Subtopology, where: str) -> None:
    for group in subtopology.copartition_groups:
        fields = (
            ("SourceTopics", group.source_topics, subtopology.source_topics),
            ("SourceTopicRegex", group.source_topic_regex, subtopology.source_topic_regex),
            ("RepartitionSourceTopics", group.repartition_source_topics, subtopology.repartition_source_topics),
        )
        for field, positions, listed in fields:
            for position in positions:
                if not 0 <= position < len(listed):
                    raise _bad(
                        f"{where}: CopartitionGroups.{field} has position {position}, but there are {len(listed)}."
                    )


def _check_internal(topic: TopicInfo, where: str) -> None:
    if topic.partitions < 0:
        raise _bad(f"{where}: internal topic {shown(topic.name)} has Partitions {topic.partitions}, less than 0.")
    if topic.replication_factor < -1:
        factor = topic.replication_factor
        raise _bad(f"{where}: internal topic {shown(topic.name)} has ReplicationFactor {factor}, less than -1.")
    keys = [config.key for config in topic.topic_configs]
    if len(set(keys)) < len(keys):
        raise _bad(f"{where}: internal topic {shown(topic.name)} has a setting twice.")


def _check_name(name: str, where: str) -> None:
    if not _LEGAL_TOPIC.fullmatch(name):
        raise _bad(f"{where}: {shown(name)} is no topic name: 1 to 249 letters, digits, '.', '_' and '-'.")
    if name in INTERNAL_TOPICS:
        raise _bad(f"{where}: topic {name} is Kafka's own; applications can't use it.")


def _bad(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, detail)
