"""The groups' keys, and the broker's keys about groups."""

from __future__ import annotations

import re
from typing import Final

from kohort.broker.config.keys import BOOLEAN, INT, LIST, LONG, STRING, Change, Key, Value, keys_by_name

_MAX_INT: Final = 2**31 - 1
_DURATION: Final = re.compile(
    r"by_duration:[+]?P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?", re.IGNORECASE
)


def _offset_reset(value: Value) -> str | None:
    assert isinstance(value, str)
    fine = value in ("latest", "earliest") or _DURATION.fullmatch(value)
    return None if fine else "latest, earliest or by_duration:PnDTnHnMn.nS is needed"


def _dead_letter_topic(value: Value) -> str | None:
    return "names of internal topics, with '__', aren't possible" if str(value).startswith("__") else None


def _distinct(value: Value) -> str | None:
    assert isinstance(value, tuple)
    return None if len(set(value)) == len(value) else "a name is in the list twice"


def _several(value: Value) -> str | None:
    return _distinct(value) if value else "at least one is needed"


def _migration_policy(value: Value) -> str | None:
    fine = isinstance(value, str) and value.lower() in ("disabled", "downgrade", "upgrade", "bidirectional")
    return None if fine else f"{value!r} is none of disabled, downgrade, upgrade, bidirectional"


# fmt: off
GROUP_KEYS: Final = keys_by_name(
    (
        Key("consumer.heartbeat.interval.ms", INT, 5000,
            "Time between two heartbeats of a consumer group's members, in ms.", 1),
        Key("consumer.assignment.interval.ms", INT, 1000,
            "The least time between two assignments of a consumer group's partitions, in ms.", 0),
        Key("consumer.moving.heartbeat.interval.ms", INT, 500,
            "Time between two heartbeats of a consumer group's members while its partitions move, in ms.", 1),
        Key("consumer.session.timeout.ms", INT, 45_000,
            "Time without heartbeats after which a member of a consumer group is removed, in ms.", 1),
        Key("errors.deadletterqueue.copy.record.enable", BOOLEAN, False,
            "Whether a share group's dead letters have key and value of the record, not only the reason."),
        Key("errors.deadletterqueue.topic.name", STRING, "",
            "The topic of a share group's dead letters; without one there are none.", check=_dead_letter_topic),
        Key("share.assignment.interval.ms", INT, 1000,
            "The least time between two assignments of a share group's partitions, in ms.", 0),
        Key("share.auto.offset.reset", STRING, "latest",
            "Where a share group begins in a partition: latest, earliest, or by_duration: and a time back.",
            check=_offset_reset),
        Key("share.delivery.count.limit", INT, 5, "Times a share group is given a record before it is given up.", 2),
        Key("share.heartbeat.interval.ms", INT, 5000,
            "Time between two heartbeats of a share group's members, in ms.", 1),
        Key("share.isolation.level", STRING, "read_uncommitted",
            "Whether a share group is given records of transactions still open or aborted.",
            valid=("read_committed", "read_uncommitted")),
        Key("share.moving.heartbeat.interval.ms", INT, 500,
            "Time between two heartbeats of a share group's members while the group is moving, in ms.", 1),
        Key("share.partition.max.record.locks", INT, 2000,
            "Records of a partition that a share group may have in flight.", 100),
        Key("share.record.lock.duration.ms", INT, 30_000,
            "How long a record stays with the member it was given to, in ms.", 1000),
        Key("share.renew.acknowledge.enable", BOOLEAN, True,
            "Whether a share group's members may renew the locks of records they were given."),
        Key("share.session.timeout.ms", INT, 45_000,
            "Time without heartbeats after which a member of a share group is removed, in ms.", 1),
        Key("streams.acceptable.recovery.lag", LONG, 10_000,
            "Records that a copy of a streams group's task may lag behind and still take the task over.", 0),
        Key("streams.assignment.interval.ms", INT, 1000,
            "The least time between two placements of a streams group's tasks, in ms.", 0),
        Key("streams.assignor.name", STRING, None, "The assignor that places a streams group's tasks."),
        Key("streams.disconnect.timeout.ms", INT, -1,
            "How long the connection of a streams group's member may be broken before it is removed, in ms; "
            "-1 is as long as the member asks for, or else its session timeout.", -1),
        Key("streams.heartbeat.interval.ms", INT, 5000,
            "Time between two heartbeats of a streams group's members, in ms.", 1),
        Key("streams.initial.rebalance.delay.ms", INT, 3000,
            "Time that a new streams group waits for more members before it gives out tasks, in ms.", 0),
        Key("streams.num.standby.replicas", INT, 0, "Standby copies of each stateful task.", 0),
        Key("streams.num.warmup.replicas", INT, 2, "Warm-up copies that a streams group may have at a time.", 0),
        Key("streams.rack.aware.assignment.tags", LIST, (),
            "Client tags over whose values a streams group's standby copies are spread.", check=_distinct),
        Key("streams.session.timeout.ms", INT, 45_000,
            "Time without heartbeats after which a member of a streams group is removed, in ms.", 1),
        Key("streams.task.offset.interval.ms", INT, 60_000,
            "Time between two reports of a streams group's members on how far their state is restored, in ms.", 1),
    )
)
"""Kafka 4.2's group keys, of 4.3 those about a share group's limits, and of 4.4 those about dead letters of
share groups, and warm-ups, racks and assignors of streams groups.

The default of each is the broker's `group.` and its name, where there is such a key; that of an assignor's name is the
first of `group.streams.assignors`."""

_CLASSIC: Final = (
    Key("group.min.session.timeout.ms", INT, 6000, "The shortest session timeout of a classic member, in ms."),
    Key("group.max.session.timeout.ms", INT, 1_800_000, "The longest session timeout of a classic member, in ms."),
    Key("group.initial.rebalance.delay.ms", INT, 3000,
        "Time that an empty classic group waits for more members, in ms."),
    Key("group.max.size", INT, _MAX_INT, "Members of a classic group.", 1),
    Key("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"),
        "The kinds of group that are offered.", valid=("consumer", "classic", "share", "streams")),
)


def _limits(kind: str) -> tuple[Key, ...]:
    """The keys that consumer, streams and share groups have in common."""
    return (
        Key(f"group.{kind}.session.timeout.ms", INT, 45_000,
            f"Time without heartbeats after which a member of a {kind} group is removed, in ms.", 1),
        Key(f"group.{kind}.min.session.timeout.ms", INT, 45_000,
            f"The shortest session timeout of a {kind} group, in ms.", 1),
        Key(f"group.{kind}.max.session.timeout.ms", INT, 60_000,
            f"The longest session timeout of a {kind} group, in ms.", 1),
        Key(f"group.{kind}.heartbeat.interval.ms", INT, 5000,
            f"Time between two heartbeats of a {kind} group's members, in ms.", 1),
        Key(f"group.{kind}.min.heartbeat.interval.ms", INT, 5000,
            f"The shortest heartbeat interval of a {kind} group, in ms.", 1),
        Key(f"group.{kind}.max.heartbeat.interval.ms", INT, 15_000,
            f"The longest heartbeat interval of a {kind} group, in ms.", 1),
    )


_MODERN: Final = (
    Key("group.consumer.max.size", INT, _MAX_INT, "Members of a consumer group.", 1),
    Key("group.consumer.assignors", LIST, ("uniform", "range"),
        "The server's assignors of consumer groups, the default first.", valid=("uniform", "range"), check=_several),
    Key("group.consumer.assignment.interval.ms", INT, 1000,
        "The least time between two assignments of a consumer group's partitions, in ms.", 0, change=Change.CLUSTER),
    Key("group.consumer.min.assignment.interval.ms", INT, 0,
        "The shortest assignment interval of a consumer group, in ms.", 0),
    Key("group.consumer.max.assignment.interval.ms", INT, 15_000,
        "The longest assignment interval of a consumer group, in ms.", 0),
    Key("group.consumer.moving.heartbeat.interval.ms", INT, 500,
        "Time between two heartbeats of a consumer group's members while its partitions move, in ms.", 1),
    Key("group.consumer.migration.policy", STRING, "bidirectional",
        "Which way groups may go between the classic and the consumer protocol.", check=_migration_policy),
    Key("group.consumer.regex.refresh.interval.ms", INT, 600_000,
        "Interval of checks for topics that match a group's regular expressions, in ms.", 10_000, internal=True),
    Key("group.streams.max.size", INT, _MAX_INT, "Members of a streams group.", 1),
    Key("group.streams.num.standby.replicas", INT, 0, "Standby copies of each stateful task.", 0),
    Key("group.streams.max.standby.replicas", INT, 2, "The most standby copies that a streams group may ask for.", 0),
    Key("group.streams.num.warmup.replicas", INT, 2, "Warm-up copies that a streams group may have at a time.", 0),
    Key("group.streams.max.warmup.replicas", INT, 20,
        "The most warm-up copies that a streams group may ask for.", 0),
    Key("group.streams.acceptable.recovery.lag", LONG, 10_000,
        "Records that a copy of a task may lag behind and still take the task over.", 0),
    Key("group.streams.task.offset.interval.ms", INT, 60_000,
        "Time between two reports of members on how far their state is restored, in ms.", 1),
    Key("group.streams.min.task.offset.interval.ms", INT, 15_000,
        "The shortest task offset interval of a streams group, in ms.", 1),
    Key("group.streams.assignors", LIST, ("optimal", "sticky"),
        "The assignors that streams groups may choose from, the default first.",
        valid=("optimal", "sticky"), check=_several),
    Key("group.streams.assignment.interval.ms", INT, 1000,
        "The least time between two placements of a streams group's tasks, in ms.", 0, change=Change.CLUSTER),
    Key("group.streams.min.assignment.interval.ms", INT, 0,
        "The shortest assignment interval of a streams group, in ms.", 0),
    Key("group.streams.max.assignment.interval.ms", INT, 15_000,
        "The longest assignment interval of a streams group, in ms.", 0),
    Key("group.streams.rack.aware.assignment.tags", LIST, (),
        "Client tags over whose values standby copies are spread.", check=_distinct),
    Key("group.streams.disconnect.timeout.ms", INT, -1,
        "How long the connection of a streams group's member may be broken before it is removed, in ms; "
        "-1 is as long as the member asks for, or else its session timeout.", -1),
    Key("group.streams.initial.rebalance.delay.ms", INT, 3000,
        "Time that a new streams group waits for more members before it gives out tasks, in ms.", 0),
    Key("errors.deadletterqueue.auto.create.topics.enable", BOOLEAN, False,
        "Whether a share group's topic of dead letters is created if it isn't there.", change=Change.CLUSTER),
    Key("errors.deadletterqueue.topic.name.prefix", STRING, "dlq.",
        "How the names of topics of dead letters begin.", change=Change.CLUSTER),
    Key("group.share.max.size", INT, 200, "Members of a share group.", 1, 1000),
    Key("group.share.assignors", LIST, ("simple",), "The server's assignors of share groups, the default first.",
        valid=("simple",), check=_several),
    Key("group.share.assignment.interval.ms", INT, 1000,
        "The least time between two assignments of a share group's partitions, in ms.", 0, change=Change.CLUSTER),
    Key("group.share.min.assignment.interval.ms", INT, 0,
        "The shortest assignment interval of a share group, in ms.", 0),
    Key("group.share.max.assignment.interval.ms", INT, 15_000,
        "The longest assignment interval of a share group, in ms.", 0),
    Key("group.share.moving.heartbeat.interval.ms", INT, 500,
        "Time between two heartbeats of a share group's members while the group is moving, in ms, if it is shorter.",
        1),
    Key("group.share.initialize.retry.interval.ms", INT, 30_000,
        "Time after which the state of a share group's partitions is initialized again that isn't yet, in ms.",
        1, internal=True),
    Key("group.share.delivery.count.limit", INT, 5, "Times a record is delivered before it is given up.", 2, 10),
    Key("group.share.min.delivery.count.limit", INT, 2, "The lowest delivery count limit of a share group.", 2, 5),
    Key("group.share.max.delivery.count.limit", INT, 10, "The highest delivery count limit of a share group.", 5, 25),
    Key("group.share.max.share.sessions", INT, 2000, "Share sessions kept at once.", 1),
    Key("group.share.partition.max.record.locks", INT, 2000,
        "Records of a partition that a share group may have in flight.", 100, 10_000),
    Key("group.share.min.partition.max.record.locks", INT, 100,
        "The fewest records of a partition that a share group may be limited to.", 100, 2000),
    Key("group.share.max.partition.max.record.locks", INT, 4000,
        "The most records of a partition that a share group may have in flight by its own configuration.",
        2000, 10_000),
    Key("group.share.record.lock.duration.ms", INT, 30_000,
        "How long a record stays with the member it was given to, in ms.", 1000, 3_600_000),
    Key("group.share.min.record.lock.duration.ms", INT, 15_000,
        "The shortest record lock of a share group, in ms.", 1000, 30_000),
    Key("group.share.max.record.lock.duration.ms", INT, 60_000,
        "The longest record lock of a share group, in ms.", 30_000, 3_600_000),
)
# fmt: on

GROUP_DEFAULT_KEYS: Final = keys_by_name(_CLASSIC, _limits("consumer"), _limits("streams"), _limits("share"), _MODERN)
"""The broker's keys about groups."""

GROUP_LIMITS: Final[dict[str, tuple[str | None, str | None]]] = {
    f"{kind}.{key}": (f"group.{kind}.min.{key}", f"group.{kind}.max.{key}")
    for kind in ("consumer", "streams", "share")
    for key in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
} | {
    "share.delivery.count.limit": ("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"),
    "share.partition.max.record.locks": (
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    "share.record.lock.duration.ms": (
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
    "streams.task.offset.interval.ms": ("group.streams.min.task.offset.interval.ms", None),
}
"""The broker keys of the lower and upper bound of a group's key; None for no bound."""
