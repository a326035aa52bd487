"""The cluster: who can be reached, what is switched on, which partitions and groups aren't well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kohort.cli.client.errors import explain
from kohort.cli.client.missing_topics import missing_sentences, missing_topics
from kohort.cli.diagnosis.addresses import (
    advertised_findings,
    ask_all,
    bootstrap_findings,
    certificate_findings,
)
from kohort.cli.diagnosis.finding import Finding, Level, some
from kohort.cli.diagnosis.movements import movement_findings
from kohort.client.admin import Admin
from kohort.client.errors import ClientError, PartialFailureError, UnsupportedError
from kohort.plurals import several
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.client.administration.cluster_info import Features, Quorum
    from kohort.client.administration.group_offsets import PartitionLag
    from kohort.client.administration.group_types import GroupDescription, GroupListing, GroupType
    from kohort.client.config import ClientConfig
    from kohort.client.types import TopicInfo, TopicPartition

T = TypeVar("T")

_Cluster = partial(Finding, "cluster")

WATCH_S: Final = 6.0
"""Seconds for which groups with members are watched."""
_LOOK_AGAIN_S: Final = 3.0
_OPEN_MS: Final = 15 * 60_000
_CLOCKS_MS: Final = 2_000
"""So many names are listed; of more, the rest is counted."""

_FEATURES: Final = {
    "streams.version": ("streams groups", "Streams applications have to run in classic groups then (group_protocol)."),
    "group.version": ("groups of the consumer protocol (KIP-848)", "Consumers have to use the classic protocol then."),
    "share.version": ("share groups", "Queues, and kohort consume --share-group, need them."),
    "transaction.version": (
        "transactions with an epoch each (KIP-890)",
        "Old ones may hang when a producer is fenced.",
    ),
}


async def cluster_findings(
    config: ClientConfig, *, named: bool, timeout: float, watch_s: float = WATCH_S
) -> list[Finding]:
    """Looks at a cluster; what can't be looked at is a finding, too.

    Args:
        named: whether somebody has named the cluster.
        timeout: of each request, in seconds.
        watch_s: seconds for which groups are watched; 0 looks at them once.
    """
    answers = await ask_all(config.addresses, config)
    found = [*bootstrap_findings(answers, named=named)]
    first = next((each for each in answers.values() if each.problem is None), None)
    if first is None:
        return found
    found.append(_Cluster(Level.FINE, f"cluster {first.cluster_id}, {several(len(first.brokers), 'broker')}"))
    told = [(each.host, each.port) for each in first.brokers]
    answers |= await ask_all([each for each in told if each not in answers], config)
    found += advertised_findings(first.cluster_id, first.brokers, answers, config.addresses)
    found += await certificate_findings(
        [each for each, answer in answers.items() if answer.problem is None], config, datetime.now(UTC)
    )
    if all(answers[each].problem is not None for each in told):
        return found  # no client gets farther
    try:
        async with Admin(config, default_api_timeout_ms=max(1, int(timeout * 1000))) as admin:
            async for each in _asked(admin, len(first.brokers), watch_s):
                found.append(each)
    except (ClientError, KafkaError) as error:
        found.append(_Cluster(Level.WRONG, f"the cluster doesn't answer: {explain(error)}"))
    return found


async def _asked(admin: Admin, brokers: int, watch_s: float) -> AsyncIterator[Finding]:
    async def clock() -> list[Finding]:
        before = time.time() * 1000
        quorum = await admin.cluster.quorum()
        return [*clock_findings(quorum, before, time.time() * 1000)]

    async def features() -> list[Finding]:
        return [*feature_findings(await admin.cluster.features())]

    async def topics() -> list[Finding]:
        return [*topic_findings(await admin.topics.list(internal=True), brokers)]

    async def transactions() -> list[Finding]:
        try:
            hanging = await admin.transactions.list(states=("Ongoing",), running_longer_than_ms=_OPEN_MS)
        except UnsupportedError:
            return []
        return [*transaction_findings([each.transactional_id for each in hanging])]

    async def groups() -> list[Finding]:
        return await _group_findings(admin, watch_s)

    looks: tuple[tuple[str, Callable[[], Awaitable[list[Finding]]]], ...] = (
        ("its clock", clock), ("its features", features), ("its topics", topics),
        ("its transactions", transactions), ("its groups", groups),
    )  # fmt: skip
    for what, look in looks:
        try:
            for each in await look():
                yield each
        except (PartialFailureError, ClientError, KafkaError) as error:
            yield _Cluster(Level.NOTE, f"{what} can't be looked at: {explain(error)}")


def clock_findings(quorum: Quorum, before_ms: float, after_ms: float) -> Iterator[Finding]:
    """Compares this machine's clock with that of the quorum's leader, which says its own time when it is asked."""
    theirs = next((each.last_caught_up for each in quorum.voters if each.node_id == quorum.leader), -1)
    if theirs < 0:
        return
    apart = theirs - after_ms if theirs > after_ms else before_ms - theirs if theirs < before_ms else 0.0
    if apart > _CLOCKS_MS:
        yield _Cluster(
            Level.WARNING, f"the cluster's clock and this machine's are {apart / 1000:,.0f} s apart",
            "Records have the time of who sends them, or of the broker: windows, retention and --from go by it.",
            "have both set by a time server",
        )  # fmt: skip
    else:
        yield _Cluster(Level.FINE, "its clock and this machine's agree")


def feature_findings(features: Features) -> Iterator[Finding]:
    """Protocols that the cluster could have, and has switched off, and those that it is too old for."""
    on = []
    for name, (what, why) in _FEATURES.items():
        level, most = features.finalized.get(name, 0), features.supported.get(name)
        if level:
            on.append(f"{name}={level}")
        elif most is None or not most.most:
            yield _Cluster(Level.NOTE, f"the brokers are too old for {what}, or have none ({name})", why)
        else:
            yield _Cluster(
                Level.WARNING, f"{what} are switched off ({name}=0)", why,
                f"kohort features upgrade {name}={most.most}",
            )  # fmt: skip
    if on:
        yield _Cluster(Level.FINE, f"switched on: {', '.join(on)}")


def topic_findings(topics: Mapping[str, TopicInfo], brokers: int) -> Iterator[Finding]:
    """Partitions that nobody can use, or that are a broker's failure from that."""
    parts = [(f"{name}-{number}", each) for name, topic in topics.items() for number, each in topic.partitions.items()]
    offline = [name for name, each in parts if each.leader is None]
    behind = [name for name, each in parts if each.leader is not None and len(each.in_sync) < len(each.replicas)]
    if offline:
        yield _Cluster(
            Level.WRONG, f"{several(len(offline), 'partition')} without a leader: {some(offline)}",
            "Nobody can read or write them.",
            "start the brokers that have their replicas; kohort topics describe names them",
        )  # fmt: skip
    if behind:
        yield _Cluster(
            Level.WARNING, f"{several(len(behind), 'under-replicated partition')}: {some(behind)}",
            "With too few replicas in sync acks=all is refused, and the loss of another broker costs records.",
            "see which broker is down or slow: the same id is missing from 'In sync' in kohort topics describe",
        )  # fmt: skip
    alone = sorted(
        name for name, topic in topics.items() if any(len(each.replicas) == 1 for each in topic.partitions.values())
    )
    if brokers > 1 and alone:
        yield _Cluster(
            Level.NOTE, f"{several(len(alone), 'topic')} with a single replica: {some(alone)}",
            "They go with their broker, and can't be used while it is down.",
        )  # fmt: skip
    if not offline and not behind:
        yield _Cluster(
            Level.FINE,
            f"{several(len(topics), 'topic')} with {several(len(parts), 'partition')}, all with all replicas",
        )


def transaction_findings(hanging: Sequence[str]) -> Iterator[Finding]:
    """Transactions that have been open for long."""
    if hanging:
        yield _Cluster(
            Level.WARNING, f"{several(len(hanging), 'transaction')} open for more than 15 minutes: {some(hanging)}",
            "Whoever reads what is committed waits before them, and the lag of streams groups ends there.",
            "see kohort transactions describe; end their producers, or wait for the transaction timeout",
        )  # fmt: skip


async def _group_findings(admin: Admin, watch_s: float) -> list[Finding]:
    listed = await admin.groups.list()
    lag = await admin.group_offsets.lag_of_groups({each.group_id: each.type for each in listed})
    found = [*group_findings(listed, lag)]
    before = await _with_members(admin, listed, {})
    found += subscription_findings(before, await missing_topics(admin, before.values()))
    looks = [before]
    while listed and (left := watch_s - (len(looks) - 1) * _LOOK_AGAIN_S) > 0:
        await asyncio.sleep(min(left, _LOOK_AGAIN_S))
        try:
            looks.append(await _with_members(admin, await admin.groups.list(), looks[-1]))
        except (PartialFailureError, ClientError, KafkaError):  # a broker is away for a moment: what is found stays
            looks.append(looks[-1])
    return [*found, *movement_findings(looks, watch_s)]


async def _with_members(
    admin: Admin, listed: Iterable[GroupListing], before: Mapping[str, GroupDescription]
) -> Mapping[str, GroupDescription]:
    """Those of these groups that have members; those that can't be described now are as they were before."""
    working = {each.group_id: each.type for each in listed if each.state.lower() not in ("empty", "dead")}
    now = await _described(admin, [*working], working)
    # What hasn't changed is kept once: 600 s are 200 looks.
    known = {**before, **{name: group for name, group in now.items() if group != before.get(name)}}
    return {name: known[name] for name in working if name in known}


async def _described(
    admin: Admin, names: Sequence[str], types: Mapping[str, GroupType]
) -> Mapping[str, GroupDescription]:
    """Those of these groups that are there, and that the user may see."""
    try:
        return await admin.groups.describe(*names, types=types) if names else {}
    except PartialFailureError as error:
        return error.done
    except KafkaError:
        return {}


def group_findings(
    groups: Iterable[GroupListing], lag: Mapping[str, Mapping[TopicPartition, PartitionLag]]
) -> Iterator[Finding]:
    """Groups that nobody works for, and those that can't work."""
    count = 0
    for group in groups:
        count += 1
        behind = sum(each.lag or 0 for each in lag.get(group.group_id, {}).values())
        if group.state.lower() == "empty" and behind:
            yield _Cluster(
                Level.WARNING, f"group {group.group_id} has no members, and {several(behind, 'record')} to read",
                "Nobody reads what comes: it waits, until retention deletes it.",
                f"start its members; or if nobody needs it: kohort groups delete {group.group_id}",
            )  # fmt: skip
        elif group.state.lower() == "notready":
            yield _Cluster(
                Level.WRONG, f"streams group {group.group_id} is NotReady",
                "Topics of its topology are missing, or have numbers of partitions that don't fit: there are no tasks.",
                "kohort doctor MODULE:APP says which, and so does the application's log",
            )  # fmt: skip
    yield _Cluster(Level.FINE, several(count, "group"))


def subscription_findings(
    groups: Mapping[str, GroupDescription], missing: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """Groups with members that subscribe to what isn't there."""
    for name, group in groups.items():
        for sentence in missing_sentences(group, missing):
            yield _Cluster(
                Level.WARNING, f"group {name}: {sentence}",
                "That isn't an error to the broker: the members wait for the topic, and read nothing of it.",
                "correct the name, or make the topic: kohort topics create",
            )  # fmt: skip
