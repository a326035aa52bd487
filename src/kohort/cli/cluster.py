"""`kohort cluster`."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import typer

from kohort.cli.client.admin import with_admin
from kohort.cli.client.errors import explain
from kohort.cli.client.options import (
    DEFAULT_TIMEOUT,
    BootstrapOption,
    ConfigOption,
    InternalOption,
    JsonOption,
    TimeoutOption,
)
from kohort.cli.terminal import complain, out, print_json, printable
from kohort.client.errors import ClientError
from kohort.plurals import several
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kohort.client.admin import Admin
    from kohort.client.administration.cluster_info import ClusterDescription
    from kohort.client.administration.group_types import GroupListing
    from kohort.client.types import TopicInfo

    _Groups = Sequence[GroupListing] | ClientError | KafkaError


def command(
    internal: InternalOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show a cluster at a glance: its brokers, its topics with their health, and its groups.

    kohort cluster -b kafka-1.example:9092

    It shows what the user may see. More is in kohort topics describe, groups describe and features describe.
    """

    async def read(admin: Admin) -> tuple[ClusterDescription, Mapping[str, TopicInfo], _Groups]:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        cluster = await admin.cluster.describe()
        topics = await admin.topics.list(internal=internal)
        try:  # in what is left of the timeout, so that the rest can be shown after it
            return cluster, topics, await admin.groups.list(timeout_ms=max(1, int((until - loop.time()) * 1000)))
        except (ClientError, KafkaError) as error:
            return cluster, topics, error

    cluster, topics, found = with_admin(bootstrap_server, config, timeout, read)
    problem = found if isinstance(found, Exception) else None
    groups = None if isinstance(found, Exception) else found
    if as_json:
        _print_json(cluster, topics, groups)
    else:
        _show(cluster, topics, groups)
    if problem is not None:
        complain(f"the groups can't be listed: {explain(problem)}")
        raise typer.Exit(1)


def _print_json(
    cluster: ClusterDescription, topics: Mapping[str, TopicInfo], groups: Sequence[GroupListing] | None
) -> None:
    from kohort.cli.client.group_report import listing_as_json
    from kohort.cli.client.topic_report import topics_as_json

    leads = _leads(topics)
    brokers = [
        {"node_id": each.node_id, "host": each.host, "port": each.port, "rack": each.rack, "leads": leads[each.node_id]}
        for each in cluster.brokers
    ]
    print_json(
        {
            "cluster_id": cluster.cluster_id,
            "controller": cluster.controller,
            "brokers": brokers,
            "topics": topics_as_json(topics.values()),
            "groups": None if groups is None else [listing_as_json(group) for group in groups],
        }
    )


def _show(cluster: ClusterDescription, topics: Mapping[str, TopicInfo], groups: Sequence[GroupListing] | None) -> None:
    from rich.text import Text

    from kohort.cli.client.group_report import groups_table
    from kohort.cli.client.tables import table
    from kohort.cli.client.topic_report import topics_table

    partitions = sum(len(topic.partitions) for topic in topics.values())
    counts = [
        several(len(cluster.brokers), "broker"),
        several(len(topics), "topic"),
        several(partitions, "partition"),
    ]
    if groups is not None:
        counts.append(several(len(groups), "group"))
    out.print(Text(f"cluster {printable(cluster.cluster_id or 'without an id')}: {', '.join(counts)}"), soft_wrap=True)
    leads = _leads(topics)
    rows = [
        (
            str(each.node_id),
            f"{each.host}:{each.port}",
            each.rack,
            leads[each.node_id],
            "controller" if each.node_id == cluster.controller else None,
        )
        for each in cluster.brokers
    ]
    out.print(table((">Broker", "Address", "Rack", ">Leads partitions", ""), rows))
    if topics:
        out.print(topics_table(topics.values()))
    if groups:
        out.print(groups_table(groups))


def _leads(topics: Mapping[str, TopicInfo]) -> Counter[int | None]:
    """How many partitions each broker leads, of the topics that are shown."""
    return Counter(partition.leader for topic in topics.values() for partition in topic.partitions.values())
