"""From a share group's page to its dead letters: real ones, of records that a member rejected."""

from __future__ import annotations

import asyncio
import re
from html import unescape

from kohort.client.admin import Admin
from kohort.client.administration.configs import ConfigResource, ResourceType
from kohort.client.producer import Producer
from kohort.client.share_consumer import AcknowledgeType, ShareConsumer
from kohort.client.types import TopicPartition
from kohort.testing import Broker
from tests.console.running import console
from tests.console.test_server import page_of
from tests.waiting import until

LETTERS = TopicPartition("dlq.mail", 0)


async def reject(servers: str, group: str, values: set[bytes]) -> None:
    """Has a member of a group reject some records of the topic "mails", and take the others."""
    async with ShareConsumer(servers, group_id=group, share_acknowledgement_mode="explicit") as consumer:
        consumer.subscribe("mails")
        seen = 0
        while seen < 3:
            for record in await consumer.poll():
                how = AcknowledgeType.REJECT if record.value in values else AcknowledgeType.ACCEPT
                consumer.acknowledge(record, how)
                seen += 1
            await consumer.commit()


def test_dead_letters_are_counted_and_shown() -> None:
    async def whole(servers: str) -> None:
        async with Admin(servers) as admin, Producer(servers) as producer:
            await admin.topics.create("mails")
            for group in ("mail", "copies", "careful"):
                settings = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": "dlq.mail"}
                await admin.configs.alter(ConfigResource(ResourceType.GROUP, group), set=settings)
            for value in (b"good", b"torn", b"worse"):
                await producer.send("mails", value)
            await producer.flush()
            await reject(servers, "careful", set())
            async with console(servers) as at:  # there is no such topic before the first letter
                assert 'group+%3D+careful">dlq.mail</a></dd>' in await at.page("/group", id="careful")
            await reject(servers, "mail", {b"torn", b"worse"})
            await reject(servers, "copies", {b"good"})

            async def written() -> bool:
                return (await admin.offsets.ends([LETTERS]))[LETTERS][1] == 3

            await until(written, "the letters are written")
            async with console(servers) as at:
                html = await at.page("/group", id="mail")
                assert "dlq.mail</a> (3 records at most, of all groups)" in html
                link = re.search(r'href="(/records\?[^"]*dlq[^"]*)"', html)
                assert link is not None
                page = page_of(await at.page(unescape(link[1])))
                letters = [" ".join(row) for row in page.rows[1:]]
                assert len(letters) == 2, letters
                for letter, offset in zip(letters, (1, 2), strict=True):
                    assert "Offset rejected by client." in letter
                    assert f"__dlq.errors.offset: {offset}__dlq.errors.group: mail__" in letter

    with Broker({"errors.deadletterqueue.auto.create.topics.enable": "true", "num.partitions": "1"}) as broker:
        asyncio.run(whole(broker.bootstrap_servers))
