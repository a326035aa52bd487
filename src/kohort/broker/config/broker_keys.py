"""The broker's keys: server, security, topics, offsets, transactions, logs and groups."""

from __future__ import annotations

import re
from typing import Final

from kohort.broker.config.group_keys import GROUP_DEFAULT_KEYS
from kohort.broker.config.inert_keys import INERT_KEYS
from kohort.broker.config.keys import BOOLEAN, INT, LIST, LONG, STRING, Change, Key, Value, keys_by_name
from kohort.broker.config.log_keys import LOG_KEYS
from kohort.broker.config.security_keys import SECURITY_KEYS

_MAX_INT: Final = 2**31 - 1
_DAY_MS: Final = 86_400_000
_PROTOCOLS: Final = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
_ENDPOINT: Final = re.compile(r"[A-Za-z0-9_-]+://(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/@]*):[0-9]{1,5}")


def _endpoints(value: Value) -> str | None:
    assert isinstance(value, tuple)
    for part in value:
        if not _ENDPOINT.fullmatch(part) or int(part.rsplit(":", 1)[1]) > 65_535:
            return f"{part!r} isn't NAME://HOST:PORT, with a port between 0 and 65535"
    return None


# fmt: off
_SERVER: Final = (
    Key("node.id", INT, 1, "Id of this node.", 0),
    Key("broker.id", INT, -1, "The old name of node.id; each is used if the other isn't set.", 0),
    Key("broker.rack", STRING, None, "Rack of this node, sent to clients."),
    Key("listeners", LIST, ("PLAINTEXT://:9092",),
        "Where connections are accepted, as NAME://HOST:PORT; an empty host is every address.", check=_endpoints,
        change=Change.BROKER),
    Key("advertised.listeners", LIST, None,
        "The address that clients connect to, where it differs from the listener's.", check=_endpoints),
    Key("listener.security.protocol.map", STRING, _PROTOCOLS,
        "The security protocol of each listener's name.", change=Change.BROKER),
    Key("controller.listener.names", LIST, (),
        "Listeners of the controller; ignored, as a single node needs none."),
    Key("socket.request.max.bytes", INT, 104_857_600, "Size of the largest request, in bytes.", 1),
    Key("queued.max.request.bytes", LONG, 268_435_456,
        "Bytes of unanswered requests, beyond which no more are read; -1 for no limit.", -1),
    Key("connections.max.idle.ms", LONG, 600_000,
        "Time after which an idle connection is closed, in ms; below 0 never."),
    Key("max.connections", INT, _MAX_INT, "Connections open at once.", 0, change=Change.CLUSTER),
    Key("max.connections.per.ip", INT, _MAX_INT,
        "Connections open at once from one address.", 0, change=Change.CLUSTER),
    Key("fetch.max.bytes", INT, 57_671_680, "Size of the largest response to a fetch, in bytes.", 1024),
    Key("max.incremental.fetch.session.cache.slots", INT, 1000, "Fetch sessions kept at once.", 0),
    Key("max.request.partition.size.limit", INT, 2000, "Partitions in one response to DescribeTopicPartitions.", 1),
    Key("telemetry.max.bytes", INT, 1 << 20, "Size of the largest metrics push of a client, in bytes.", 1),
)

_QUOTAS: Final = (
    Key("quota.window.num", INT, 11, "Samples of the window that rates of clients are measured in.", 1),
    Key("quota.window.size.seconds", INT, 1, "How long each of these samples is, in seconds.", 1),
    Key("controller.quota.window.num", INT, 11, "Samples of the window for topics created and deleted.", 1),
    Key("controller.quota.window.size.seconds", INT, 1, "How long each of these samples is, in seconds.", 1),
)

_TOPICS: Final = (
    Key("num.partitions", INT, 1, "Partitions of a topic created without a number of partitions.", 1),
    Key("default.replication.factor", INT, 1,
        "Replicas of a topic created without a replication factor; 1 is possible."),
    Key("auto.create.topics.enable", BOOLEAN, True, "Whether a requested topic that doesn't exist is created."),
    Key("delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted."),
)

_OFFSETS: Final = (
    Key("offset.metadata.max.bytes", INT, 4096, "Size of the text that goes with a committed offset, in bytes."),
    Key("offsets.retention.minutes", INT, 10_080,
        "How long a group's offsets are kept after its last member left, in minutes.", 1),
    Key("offsets.retention.check.interval.ms", LONG, 600_000, "Interval of checks for expired offsets, in ms.", 1),
    Key("offsets.topic.num.partitions", INT, 50, "Partitions of __consumer_offsets; fixed once it exists.", 1),
    Key("offsets.topic.segment.bytes", INT, 100 << 20, "Size of a segment of __consumer_offsets, in bytes.", 1),
)

_TRANSACTIONS: Final = (
    Key("transaction.max.timeout.ms", INT, 900_000,
        "The longest time a producer may ask for its transactions, in ms.", 1),
    Key("transactional.id.expiration.ms", INT, 7 * _DAY_MS,
        "How long an unused transactional id is kept, in ms.", 1),
    Key("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000,
        "Interval of checks for timed-out transactions, in ms.", 1),
    Key("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000,
        "Interval of checks for expired transactional ids, in ms.", 1),
    Key("transaction.state.log.num.partitions", INT, 50,
        "Partitions of __transaction_state; fixed once it exists.", 1),
    Key("transaction.state.log.segment.bytes", INT, 100 << 20,
        "Size of a segment of __transaction_state, in bytes.", 1),
    Key("producer.id.expiration.ms", INT, _DAY_MS,
        "How long the state of an idle producer is kept, in ms.", 1, change=Change.CLUSTER),
    Key("producer.id.expiration.check.interval.ms", INT, 600_000,
        "Interval of checks for expired producer state, in ms.", 1, internal=True),
)

_SHARE_STATE: Final = (
    Key("share.coordinator.state.topic.num.partitions", INT, 50,
        "Partitions of __share_group_state; fixed once it exists.", 1),
    Key("share.coordinator.state.topic.segment.bytes", INT, 100 << 20,
        "Size of a segment of __share_group_state, in bytes.", 1),
    Key("share.coordinator.snapshot.update.records.per.snapshot", INT, 500,
        "Updates of a share partition's state between two snapshots.", 0, 500),
    Key("share.coordinator.state.topic.prune.interval.ms", INT, 300_000,
        "Interval of deleting what is redundant in __share_group_state, in ms.", 1, internal=True),
    Key("share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000,
        "Time after which the state of a share partition is written again, so that older ones can be deleted, in ms.",
        1, internal=True),
)
# fmt: on

BROKER_KEYS: Final = keys_by_name(
    _SERVER,
    SECURITY_KEYS.values(),
    _QUOTAS,
    _TOPICS,
    _OFFSETS,
    _TRANSACTIONS,
    _SHARE_STATE,
    LOG_KEYS.values(),
    GROUP_DEFAULT_KEYS.values(),
    INERT_KEYS.values(),
)
"""The keys in use: Kafka 4.2's, with its defaults where they make sense on a single node."""
