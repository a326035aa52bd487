"""Writes one record."""

from __future__ import annotations

from typing import Final

from kohort.client.producer import Producer
from kohort.console.changes.fields import Fields
from kohort.console.changes.plan import Access, Change, Done, Plan, cell
from kohort.console.record_ranges import ChoiceError
from kohort.plurals import several

FORMS: Final = ("text", "hex", "null")
"""How keys and values are given."""

_WAIT_MS: Final = 15_000


class Produce(Change):
    """Writes a record to a topic."""

    action = "produce"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """The record, as it would be written."""
        name = fields.needed("topic", "the topic")
        topic = (await access.admin.topics.describe(name))[name]
        if topic.internal:
            raise ChoiceError(f"{name} is one of Kafka's own topics, which only brokers write to")
        partition = fields.whole("partition", "the partition")
        if partition is not None and partition not in topic.partitions:
            raise ChoiceError(f"{name} has no partition {partition}, but {len(topic.partitions)}, from 0")
        key, value = _content(fields, "key"), _content(fields, "value")
        headers = [(header, text.encode()) for header, text in fields.pairs("headers", "headers")]
        sizes = {"key": None if key is None else len(key), "value": None if value is None else len(value)}
        rows = {
            "Partition": cell("chosen by the key, if there is one" if partition is None else partition),
            "Key": cell(_told(fields, "key", key)),
            "Value": cell(_told(fields, "value", value)),
            **{f"Header {header}": cell(text.decode()) for header, text in headers},
        }
        return Plan(
            action=self.action,
            target=name,
            title=f"Write a record to {name}",
            effects=("One record is written. It can't be taken back.",),
            columns=("Part", "Content"),
            rows={part: (cell(part), content) for part, content in rows.items()},
            basis=(topic.topic_id, len(topic.partitions)),
            work=(partition, key, value, headers),
            told={"partition": partition, "bytes": sizes, "headers": [header for header, _ in headers]},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Writes it, once."""
        partition, key, value, headers = plan.work
        async with Producer(
            access.config, linger_ms=0, max_block_ms=_WAIT_MS, delivery_timeout_ms=3 * _WAIT_MS
        ) as producer:
            sent = await producer.send(plan.target, value, key=key, partition=partition, headers=headers)
            written = await sent
        return Done(
            f"The record is in partition {written.partition} of {plan.target}, at offset {written.offset:,}.",
            {"partition": written.partition, "offset": written.offset},
        )


def _content(fields: Fields, part: str) -> bytes | None:
    """A key or value, in the form that is said beside it."""
    text = fields.raw(part)
    match fields.text(f"{part}_form") or "text":
        case "text":
            return None if part == "key" and not text else text.encode()  # as hex, a key may be empty
        case "hex":
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise ChoiceError(f"the {part} is no hex: two digits a byte are wanted, such as 00 ff") from None
        case "null":
            if text:
                raise ChoiceError(f"the {part} is null, and yet there is text")
            return None
        case form:
            raise ChoiceError(f"the {part} is {', '.join(FORMS)}, not {form!r}")


def _told(fields: Fields, part: str, content: bytes | None) -> str:
    if content is None:
        return "null"
    return f"{fields.raw(part)} ({several(len(content), 'byte')})" if content else "empty"
