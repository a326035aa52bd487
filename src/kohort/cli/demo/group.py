"""The application's group, as the broker describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kohort.cli.client.tables import table
from kohort.client import Admin, Consumer, TopicPartition
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupMember
from kohort.client.errors import ClientError
from kohort.number_ranges import partitions_text
from kohort.protocol.errors import KafkaError
from kohort.streams.tasks import Role


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group at a point in time.

    Attributes:
        group: members with their tasks.
    """

    group: GroupDescription
    lag: Mapping[TopicPartition, PartitionLag]
    names: Mapping[tuple[str, int], str]

    @property
    def reconciled(self) -> bool:
        """Whether every member has its target assignment, and it isn't empty."""
        states = [member.streams for member in self.group.members if self.group.state.lower() == "stable"]
        return bool(states) and all(state and state.tasks and state.tasks == state.target_tasks for state in states)

    def behind(self, topic: str) -> int:
        """The group's lag in a topic, in records; where nothing is committed, all of them."""
        return sum((each.end or 0) - (each.committed or 0) for at, each in self.lag.items() if at.topic == topic)

    def done(self, topic: str) -> int:
        return sum(each.committed or 0 for at, each in self.lag.items() if at.topic == topic)

    def shown(self) -> RenderableType:
        """The group's state, and a line an instance."""
        state = self.group.state.lower() or "in an unknown state"
        head = Text.assemble(
            "   ", (self.group.group_id, "bold"), f": {state}, epoch {self.group.epoch}, ",
            f"{self.behind('flights'):,} flights to go",
        )  # fmt: skip
        rows = sorted(
            (self._name(member), *_tasks(member), "" if member.epoch is None else str(member.epoch))
            for member in self.group.members
        )
        lines = table(("Member", "Active", "Standby", "Warm-up", ">Epoch"), rows)
        return Group(head, Padding(lines, (0, 0, 0, 3), expand=False))

    def _name(self, member: GroupMember) -> str:
        endpoint = None if member.streams is None else member.streams.endpoint
        return self.names.get(endpoint, member.member_id) if endpoint else member.member_id


async def describe_group(admin: Admin, group_id: str, names: Mapping[tuple[str, int], str]) -> GroupView | None:
    """The group now; None while it doesn't exist, or the broker doesn't answer."""
    try:
        group = (await admin.groups.describe(group_id, timeout_ms=5_000))[group_id]
        lag = await admin.group_offsets.lag(group_id, partitions=group.owners(), timeout_ms=5_000)
    except (ClientError, KafkaError):
        return None
    known = {at: each for at, each in lag.items() if each.end is not None}
    return GroupView(group, known, names)


async def all_read(servers: str, view: GroupView) -> bool:
    """Whether the group has read all committed records of its partitions.

    The committed offset isn't always the partition's end when all has been read: transactions end with a marker, which
    has an offset of its own.
    """
    open_ends = {at: each for at, each in view.lag.items() if (each.committed or 0) < (each.end or 0)}
    if not open_ends:
        return True
    async with Consumer(servers, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        consumer.assign(open_ends)
        for at, each in open_ends.items():
            consumer.seek(at, each.committed or 0)
        batch = await consumer.poll_batch(timeout_ms=1_000)
        at_end = all((consumer.position(at) or 0) >= (each.end or 0) for at, each in open_ends.items())
    return at_end and (batch is None or not batch.num_rows)  # else there are records, or a transaction is open


def _tasks(member: GroupMember) -> Iterable[str]:
    tasks = {} if member.streams is None else member.streams.tasks
    return [partitions_text(sorted(task for task, has in tasks.items() if has is role)) or "-" for role in Role]
