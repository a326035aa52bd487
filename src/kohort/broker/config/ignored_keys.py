"""Kafka's keys without effect here: accepted, so that a server.properties of Kafka's loads, and ignored."""

from __future__ import annotations

from typing import Final

from kohort.broker.config.keys import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Key,
    Type,
    keys_by_name,
)

_NAMES: Final[dict[str, dict[Type, str]]] = {
    "metrics are served to Prometheus, with --metrics": {
        INT: """
            kafka.metrics.polling.interval.secs metrics.num.samples
        """,
        LIST: """
            kafka.metrics.reporters metric.reporters
        """,
        LONG: """
            metrics.sample.window.ms
        """,
        STRING: """
            metrics.recording.level
        """,
    },
    "TLS is OpenSSL's, a single node logs in nowhere, and Kerberos isn't served": {
        BOOLEAN: """
            sasl.oauthbearer.assertion.claim.jti.include ssl.allow.dn.changes ssl.allow.san.changes
        """,
        CLASS: """
            sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
            sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
        """,
        DOUBLE: """
            sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
            sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        """,
        INT: """
            sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
            sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.nbf.seconds
        """,
        LIST: """
            sasl.kerberos.principal.to.local.rules
        """,
        LONG: """
            sasl.kerberos.min.time.before.relogin sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        """,
        PASSWORD: """
            sasl.oauthbearer.assertion.private.key.passphrase
            sasl.oauthbearer.client.credentials.client.secret
        """,
        SHORT: """
            sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
        """,
        STRING: """
            sasl.kerberos.kinit.cmd sasl.kerberos.service.name sasl.mechanism.controller.protocol
            sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm
            sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss
            sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
            sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.template.file
            sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.scope
            sasl.oauthbearer.token.endpoint.url security.inter.broker.protocol security.providers
            ssl.endpoint.identification.algorithm ssl.keymanager.algorithm ssl.protocol ssl.provider
            ssl.secure.random.implementation ssl.trustmanager.algorithm
        """,
    },
    "the coordinator of share groups is in this process, and writes at once": {
        BOOLEAN: """
            group.share.enable
        """,
        INT: """
            share.coordinator.append.linger.ms
            share.coordinator.load.buffer.size share.coordinator.state.topic.compression.codec
            share.coordinator.threads share.coordinator.write.timeout.ms
            share.fetch.purgatory.purge.interval.requests
        """,
        STRING: """
            group.share.persister.class.name
        """,
    },
    "offsets are written as they come": {
        INT: """
            offsets.topic.compression.codec
        """,
    },
    "the broker is one event loop and sizes its own buffers": {
        DOUBLE: """
            log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second
        """,
        INT: """
            delete.records.purgatory.purge.interval.requests
            fetch.purgatory.purge.interval.requests group.coordinator.append.linger.ms group.coordinator.threads
            log.cleaner.io.buffer.size log.flush.start.offset.checkpoint.interval.ms
            offsets.load.buffer.size
            producer.purgatory.purge.interval.requests queued.max.requests socket.listen.backlog.size
            socket.receive.buffer.bytes socket.send.buffer.bytes transaction.state.log.load.buffer.size
        """,
        LONG: """
            log.cleaner.dedupe.buffer.size log.initial.task.delay.ms
            server.max.startup.time.ms
        """,
    },
    "the node is its own controller": {
        BOOLEAN: """
            controller.quorum.auto.join.enable
        """,
        INT: """
            broker.heartbeat.interval.ms broker.session.timeout.ms controller.quorum.append.linger.ms
            controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
            controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
            controller.quorum.retry.backoff.ms
            controller.socket.timeout.ms initial.broker.registration.timeout.ms
            internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
            internal.metadata.max.fetch.size.in.bytes metadata.log.segment.bytes metadata.max.idle.interval.ms
        """,
        LIST: """
            controller.quorum.bootstrap.servers controller.quorum.voters early.start.listeners process.roles
        """,
        LONG: """
            controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
            internal.metadata.delete.delay.millis metadata.log.max.record.bytes.between.snapshots
            metadata.log.max.snapshot.interval.ms metadata.log.segment.ms metadata.max.retention.bytes
            metadata.max.retention.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
        """,
        STRING: """
            metadata.log.dir
        """,
    },
    "quotas are those of clients": {
        INT: """
            max.connection.creation.rate
        """,
        STRING: """
            max.connections.per.ip.overrides
        """,
    },
    "there is no tiered storage": {
        DOUBLE: """
            remote.log.manager.task.retry.jitter
        """,
        INT: """
            remote.fetch.max.wait.ms remote.log.manager.copier.thread.pool.size
            remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
            remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.quota.window.num
            remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
            remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
            remote.log.reader.max.pending.tasks remote.log.reader.threads
        """,
        LONG: """
            remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
            remote.log.manager.copy.max.bytes.per.second remote.log.manager.fetch.max.bytes.per.second
            remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
            remote.log.manager.task.retry.backoff.ms
        """,
        STRING: """
            remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
            remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
            remote.log.storage.manager.class.name remote.log.storage.manager.class.path
            remote.log.storage.manager.impl.prefix
        """,
    },
    "there is one replica, on this node": {
        BOOLEAN: """
            auto.leader.rebalance.enable controlled.shutdown.enable
        """,
        INT: """
            add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
            alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
            num.replica.alter.log.dirs.threads offsets.commit.timeout.ms
            replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
            replica.fetch.response.max.bytes replica.fetch.wait.max.ms replica.socket.receive.buffer.bytes
            replica.socket.timeout.ms replication.quota.window.num replication.quota.window.size.seconds
            request.timeout.ms transaction.state.log.min.isr
        """,
        LONG: """
            leader.imbalance.check.interval.seconds log.dir.failure.timeout.ms
            replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
            unclean.leader.election.interval.ms
        """,
        SHORT: """
            offsets.topic.replication.factor share.coordinator.state.topic.min.isr
            share.coordinator.state.topic.replication.factor transaction.state.log.replication.factor
        """,
        STRING: """
            inter.broker.listener.name replica.selector.class
        """,
    },
    "transactions are always verified": {
        BOOLEAN: """
            transaction.partition.verification.enable
        """,
    },
    "unstable versions aren't offered": {
        BOOLEAN: """
            unstable.api.versions.enable unstable.feature.versions.enable
        """,
    },
}
"""The keys by reason and type."""

IGNORED_REASONS: Final = {
    name: reason for reason, types in _NAMES.items() for names in types.values() for name in names.split()
}
"""Why each key is ignored, as the end of a sentence."""

IGNORED_KEYS: Final = keys_by_name(
    Key(name, kind, None, f"Without effect: {reason}.")
    for reason, types in _NAMES.items()
    for kind, names in types.items()
    for name in names.split()
)
"""The keys, without defaults; values must be of the right type."""

_NO_PLUGINS: Final = "it names a class of Java"
REFUSED: Final = {
    "alter.config.policy.class.name": _NO_PLUGINS,
    "client.quota.callback.class": _NO_PLUGINS,
    "config.providers": f"{_NO_PLUGINS}; set the values themselves, or KOHORT_… variables",
    "create.topic.policy.class.name": _NO_PLUGINS,
    "remote.log.storage.system.enable": "there is no tiered storage",
    "transaction.two.phase.commit.enable": "two-phase commit isn't offered",
}
"""Keys that are refused when they are set, and why: ignoring them would allow what they forbid."""

_REMOVED: Final = """
    broker.id.generation.enable control.plane.listener.name
    delegation.token.master.key inter.broker.protocol.version log.message.downconversion.enable
    log.message.format.version log.message.timestamp.difference.max.ms offsets.commit.required.acks
    password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
    password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret
    reserved.broker.max.id zookeeper.clientCnxnSocket zookeeper.connect
    zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
    zookeeper.session.timeout.ms zookeeper.set.acl zookeeper.ssl.client.enable
"""
REMOVED: Final = frozenset(_REMOVED.split())
"""Keys of older versions of Kafka, which the newest ignores as well."""

IGNORED_PREFIXES: Final = ("rlmm.config.", "rsm.config.", "metrics.jmx.", "zookeeper.ssl.")
"""Prefixes of keys for plugins."""
