"""Changes of topics: made, enlarged, set otherwise, emptied and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kohort.client.administration.configs import ConfigEntry, ConfigResource, ResourceType
from kohort.client.administration.topics import NewTopic
from kohort.client.types import TopicInfo, TopicPartition
from kohort.console.changes.fields import Fields
from kohort.console.changes.plan import Access, Change, Done, Plan, cell, check_rows, count
from kohort.console.record_ranges import ChoiceError
from kohort.plurals import several

_NO_ID: Final = UUID(int=0)


class CreateTopic(Change):
    """Makes a topic."""

    action = "create-topic"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """What it would be like; the brokers have checked it."""
        new = NewTopic(
            fields.needed("name", "the name"),
            fields.whole("count", "the number of partitions", least=1),
            fields.whole("replicas", "the number of replicas", least=1),
            dict(fields.pairs("settings", "settings")),
        )
        made = (await access.admin.topics.create(new, validate_only=True))[new.name]
        told = {
            "partitions": made.partitions or new.partitions,
            "replicas": made.replication_factor or new.replication_factor,
            "settings": dict(new.configs),
        }
        rows = {"Partitions": told["partitions"], "Replicas of each": told["replicas"], **new.configs}
        return Plan(
            action=self.action,
            target=new.name,
            title=f"Create the topic {new.name}",
            effects=("There will be a topic of that name.",),
            columns=("Setting", "Value"),
            rows={key: (cell(key), cell(value or "the cluster's default")) for key, value in rows.items()},
            work=new,
            told=told,
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Makes it."""
        made = (await access.admin.topics.create(plan.work))[plan.target]
        size = "" if made.partitions is None else f" with {several(made.partitions, 'partition')}"
        return Done(f"The topic {plan.target} is there{size}.", {"id": str(made.topic_id)})


class AddPartitions(Change):
    """Gives a topic more partitions."""

    action = "add-partitions"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """How many there would be; the brokers have checked it."""
        topic = await _described(access, fields)
        total = fields.whole("count", "the number of partitions", least=1)
        if total is None:
            raise ChoiceError("the number of partitions is missing")
        now = len(topic.partitions)
        if total > now:
            await access.admin.topics.add_partitions(topic.name, total, validate_only=True)
        return Plan(
            action=self.action,
            target=topic.name,
            title=f"Add partitions to {topic.name}",
            effects=(f"It has {several(now, 'partition')}, and will have {total:,}. They can't be taken away again.",),
            warnings=("Records of a key may go to another partition from then on, which breaks their order.",),
            blocked="" if total > now else f"It has {several(now, 'partition')} already.",
            basis=(topic.topic_id, now),
            work=total,
            told={"partitions": [now, total]},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Adds them."""
        await access.admin.topics.add_partitions(plan.target, plan.work)
        return Done(f"{plan.target} has {several(plan.work, 'partition')} now.")


class AlterSettings(Change):
    """Changes settings of a topic."""

    action = "alter-settings"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """Each setting before and after; the brokers have checked them."""
        topic = await _described(access, fields, internal=True)
        given, unset = dict(fields.pairs("settings", "settings")), [*dict.fromkeys(fields.lines("unset"))]
        if not given and not unset:
            raise ChoiceError("settings are missing: give some, or some to go back to their defaults")
        if both := sorted({*given} & {*unset}):
            raise ChoiceError(f"{', '.join(both)} can't be set and go back to the default at once")
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        before = (await access.admin.configs.describe(resource, keys=[*given, *unset]))[resource]
        await access.admin.configs.alter(resource, set=given, delete=unset, validate_only=True)
        after: dict[str, str | None] = {**given, **dict.fromkeys(unset)}
        return Plan(
            action=self.action,
            target=topic.name,
            title=f"Change settings of {topic.name}",
            effects=(f"{several(len(after), 'setting')} of the topic {'is' if len(after) == 1 else 'are'} changed.",),
            columns=("Setting", "Now", "Will be"),
            rows={
                key: (cell(key), cell(_value(before.get(key))), cell("the default" if value is None else value))
                for key, value in after.items()
            },
            basis=(topic.topic_id, frozenset((key, _value(each), each.source) for key, each in before.items())),
            work=(given, unset),
            told={"settings": {key: [_value(before.get(key)), value] for key, value in after.items()}},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Changes them."""
        given, unset = plan.work
        resource = ConfigResource(ResourceType.TOPIC, plan.target)
        await access.admin.configs.alter(resource, set=given, delete=unset)
        return Done(f"{several(len(given) + len(unset), 'setting')} of {plan.target} changed.")


def _value(entry: ConfigEntry | None) -> str | None:
    return None if entry is None else "secret" if entry.sensitive else entry.value


class DeleteRecords(Change):
    """Deletes the oldest records of a topic."""

    action = "delete-records"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """Where each partition would begin, and how many records would be gone."""
        topic = await _described(access, fields)
        numbers = fields.partitions("partitions")
        if missing := sorted({*(numbers or ())} - {*topic.partitions}):
            raise ChoiceError(f"{topic.name} has no partition {missing[0]}, but {len(topic.partitions)}, from 0")
        wanted = [TopicPartition(topic.name, each) for each in (topic.partitions if numbers is None else numbers)]
        check_rows(len(wanted), "partitions")
        ends = await access.admin.offsets.ends(wanted)
        if fields.text("before") == "end" and fields.text("offset"):
            raise ChoiceError("all records are to be deleted, but a first offset to keep is filled in: choose one")
        before = None if fields.text("before") == "end" else fields.whole("offset", "the first offset to keep")
        if before is None and fields.text("before") != "end":
            raise ChoiceError("the first offset to keep is missing")
        past = [str(at) for at, (_, end) in ends.items() if before is not None and before > end]
        if past:
            raise ChoiceError(f"{past[0]} ends before offset {before}")
        first = {at: max(start, end if before is None else before) for at, (start, end) in ends.items()}
        gone = {at: first[at] - ends[at][0] for at in ends}
        total = sum(gone.values())
        rows = {
            str(at): (cell(at), count(ends[at][0]), count(first[at]), count(ends[at][1]), count(gone[at]))
            for at in ends
        }
        return Plan(
            action=self.action,
            target=topic.name,
            title=f"Delete records of {topic.name}",
            effects=(f"{several(total, 'record')} {'is' if total == 1 else 'are'} gone, counted by their offsets.",),
            warnings=("They can't be brought back.",),
            blocked="" if any(gone.values()) else "There are no such records.",
            columns=("Partition", ">First offset", ">New first offset", ">End", ">Records gone"),
            rows=rows,
            basis=(topic.topic_id, frozenset((at, ends[at][0]) for at in ends)),
            work={at: first[at] for at in ends if gone[at]},
            told={"first_offsets": {str(at): [ends[at][0], first[at]] for at in ends if gone[at]}},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Deletes those that were shown, and none that have come since."""
        first: Mapping[TopicPartition, int] = await access.admin.topics.delete_records(plan.work)
        return Done(
            f"Records of {several(len(first), 'partition')} of {plan.target} are deleted.",
            {"first_offsets": {str(at): offset for at, offset in first.items()}},
        )


class DeleteTopic(Change):
    """Deletes a topic with its records."""

    action = "delete-topic"

    async def plan(self, access: Access, fields: Fields) -> Plan:
        """What would be gone."""
        topic = await _described(access, fields)
        partitions = [TopicPartition(topic.name, at) for at in topic.partitions]
        check_rows(len(partitions), "partitions")
        ends = await access.admin.offsets.ends(partitions)
        records = sum(end - start for start, end in ends.values())
        return Plan(
            action=self.action,
            target=topic.name,
            title=f"Delete the topic {topic.name}",
            effects=(
                f"The topic is gone, with {several(len(partitions), 'partition')} and {several(records, 'record')}, "
                "counted by their offsets.",
            ),
            warnings=("It can't be brought back.",),
            columns=("Partition", ">First offset", ">End"),
            rows={str(at): (cell(at), count(start), count(end)) for at, (start, end) in ends.items()},
            basis=topic.topic_id,
            work=topic.name if topic.topic_id == _NO_ID else topic.topic_id,
            told={"id": str(topic.topic_id), "ends": {str(at): [*each] for at, each in ends.items()}},
        )

    async def do(self, access: Access, plan: Plan) -> Done:
        """Deletes the one that was shown, and none of the same name that was made since."""
        await access.admin.topics.delete(plan.work)
        return Done(f"The topic {plan.target} is deleted.")


async def _described(access: Access, fields: Fields, *, internal: bool = False) -> TopicInfo:
    """The topic of a form, which is one of Kafka's own only with `internal`."""
    name = fields.needed("topic", "the topic")
    topic = (await access.admin.topics.describe(name))[name]
    if topic.internal and not internal:
        raise ChoiceError(f"{name} is one of Kafka's own topics, of which the console changes settings alone")
    return topic
