"""What must hold in a world of consumer groups, whatever happens."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from kohort.client.types import TopicPartition
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.modern.timeouts import RETRY_MS
from kohort.coordinator.shard import GroupShard
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.topic_partition import TopicIdPartition
from tests.simulation.books import InvariantError

if TYPE_CHECKING:
    from tests.simulation.consumer_groups.world import ConsumerWorld

SLACK_MS = 1_000
"""How late a timer may be, with time for a coordinator's restart to be noticed."""

At = tuple[str, TopicPartition]


class Checker:
    """Compares what the coordinator and its members do with what they may.

    Attributes:
        committed_at: the committed offset of each partition of each group.
        processed: how many records of it were processed, from the first on without a gap.
    """

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.committed_at: dict[At, int] = {}
        self.processed: dict[At, int] = defaultdict(int)
        self._epochs: dict[str, int] = {}
        self._heard: dict[tuple[str, str], int] = {}
        self._unrevoked: dict[tuple[str, str], tuple[int, int]] = {}

    def _fail(self, what: str) -> None:
        raise InvariantError(what)

    # The coordinator ------------------------------------------------------------------------------------------------

    def check_group(self, group_id: str) -> None:
        """No partition has two holders, epochs only rise, and a replay of the log comes to the same."""
        self._check_replay(group_id)
        group = self.world.shard.consumer.get(group_id)
        if group is None:
            self._epochs.pop(group_id, None)
            return
        holders: dict[TopicIdPartition, str] = {}
        for member_id, member in group.members.items():
            for partition in {**member.current.assigned, **member.current.revoking}:
                if holders.setdefault(partition, member_id) != member_id:
                    self._fail(f"{partition} of {group} is with {member_id} and {holders[partition]}")
            if member.current.epoch > group.epoch:
                self._fail(f"{member_id} is on epoch {member.current.epoch} of {group}")
            self._watch(group, member_id)
        if group.epoch < self._epochs.get(group_id, 0) or group.assignment_epoch > group.epoch:
            self._fail(f"epochs of {group} after {self._epochs.get(group_id)}")
        self._epochs[group_id] = group.epoch

    def _check_replay(self, group_id: str) -> None:
        live, replayed = persisted(self.world.shard, group_id), persisted(self.world.shadow, group_id)
        for what in live | replayed:
            value = live.get(what)
            if value != replayed.get(what):
                self._fail(f"{what} of {group_id} is {value}; a replay makes it {replayed.get(what)}")

    def _watch(self, group: ConsumerGroup, member_id: str) -> None:
        """Note since when a member has had to revoke something."""
        at, current = (group.group_id, member_id), group.members[member_id].current
        self._heard.setdefault(at, self.world.now)
        if current.state is not MemberState.UNREVOKED:
            self._unrevoked.pop(at, None)
        elif self._unrevoked.get(at, (0, -1))[1] != current.epoch:
            self._unrevoked[at] = (self.world.now, current.epoch)

    def restarted(self) -> None:
        """Timeouts begin anew."""
        now = self.world.now
        self._heard = dict.fromkeys(self._heard, now)
        self._unrevoked = {at: (now, epoch) for at, (_, epoch) in self._unrevoked.items()}

    def check_deadlines(self) -> None:
        """Members that are silent, or keep what is revoked for their rebalance timeout, are gone."""
        world = self.world
        if not world.up or world.append_error is not None:
            return
        for at, heard in list(self._heard.items()):
            group = world.shard.consumer.get(at[0])
            member = None if group is None else group.members.get(at[1])
            if member is None:
                del self._heard[at]
                self._unrevoked.pop(at, None)
                continue
            if world.now > self._removed_by(heard + world.settings.session_timeout_ms):
                self._fail(f"{at[1]} is still a member of {group}, silent since {heard}")
            since = self._unrevoked.get(at)
            timeout = member.metadata.rebalance_timeout_ms
            if since is not None and member.current.epoch >= 0 and world.now > self._removed_by(since[0] + timeout):
                self._fail(f"{at[1]} is still a member of {group}, with what it should have revoked since {since}")

    def _removed_by(self, deadline: int) -> int:
        """When a member is removed at the latest; a removal that can't be appended is tried again."""
        return max(deadline, self.world.append_failed_at) + RETRY_MS + SLACK_MS

    # Members --------------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, response: Any) -> None:
        """A heartbeat was answered."""
        at = (request.group_id, response.member_id)
        if response.error_code or request.member_epoch < 0:
            return
        self._heard[at] = self.world.now
        group = self.world.shard.consumer.get(request.group_id)
        member = None if group is None else group.members.get(response.member_id)
        if member is None or member.current.epoch != response.member_epoch:
            self._fail(f"{response} doesn't tell the epoch of {member}")
            return
        if request.member_epoch > response.member_epoch:
            self._fail(f"epoch {response.member_epoch} after {request}")
        if response.assignment is not None:
            told = {
                TopicIdPartition(topic.topic_id, each)
                for topic in response.assignment.topic_partitions
                for each in topic.partitions
            }
            if told != set(member.current.assigned):
                self._fail(f"{response} tells another assignment than {member.current}")

    def check_clients(self, group_id: str) -> None:
        """Of clients that are members, no two have the same partition.

        A client that was fenced may not know it yet; its commits don't count any more.
        """
        if not self.world.up:
            return
        group = self.world.shard.consumer.get(group_id)
        if group is None:
            return
        owners: dict[TopicPartition, str] = {}
        for client in self.world.members.values():
            if client.group_id != group_id or client.gone or client.member_id not in group.members:
                continue
            if group.members[client.member_id].current.epoch < 0:
                continue
            for partition in client.owned:
                other = owners.setdefault(partition, client.name)
                if other != client.name:
                    self._fail(f"{partition} is with {client.name} and {other} of {group}")

    def consumed(self, group_id: str, partition: TopicPartition, first: int, end: int) -> None:
        """A member processed the records from `first` up to `end`."""
        done = self.processed[group_id, partition]
        if first > done:
            self._fail(f"{partition} of {group_id}: records {done} to {first} were lost")
        self.processed[group_id, partition] = max(done, end)

    def committed(self, request: OffsetCommitRequest) -> None:
        """A commit was taken."""
        group = self.world.shard.consumer.get(request.group_id)
        member = None if group is None else group.members.get(request.member_id)
        if member is None:
            self._fail(f"{request} was taken, but is no member's")
            return
        for topic in request.topics:
            topic_id = self.world.topics.ids[topic.name]
            for each in topic.partitions:
                at = (request.group_id, TopicPartition(topic.name, each.partition_index))
                held = TopicIdPartition(topic_id, each.partition_index)
                if held not in member.current.assigned and held not in member.current.revoking:
                    self._fail(f"{request.member_id} commits {at}, which it doesn't hold")
                if each.committed_offset < self.committed_at.get(at, 0):
                    self._fail(f"the offset of {at} goes back from {self.committed_at[at]} to {each.committed_offset}")
                self.committed_at[at] = each.committed_offset

    # At the end -----------------------------------------------------------------------------------------------------

    def check_peace(self, group_id: str) -> None:
        """A group that was left alone is stable: each partition is with one member, which knows it, evenly spread."""
        clients = [one for one in self.world.members.values() if one.group_id == group_id and not one.gone]
        group = self.world.shard.consumer.get(group_id)
        if not clients:
            if group is not None and group.members:
                self._fail(f"{group} has {list(group.members)}, but nobody is there")
            return
        if group is None or group.state.value != "Stable":
            self._fail(f"{group} isn't stable")
            return
        if set(group.members) != {one.member_id for one in clients}:
            self._fail(f"{group} has {sorted(group.members)}, there are {[one.member_id for one in clients]}")
        owned: dict[TopicPartition, str] = {}
        for one in clients:
            assigned = {
                TopicPartition(self.world.topics.names[each.topic_id], each.partition)
                for each in group.members[one.member_id].current.assigned
            }
            if one.owned != assigned or not one.is_stable:
                self._fail(f"{one} has {sorted(one.owned)}; the coordinator gave it {sorted(assigned)}")
            if strays := {each.topic for each in assigned} - one.topics():
                self._fail(f"{one} has {strays}, which it doesn't subscribe to")
            owned |= dict.fromkeys(assigned, one.name)
        wanted = {
            TopicPartition(topic, number)
            for topic in set().union(*(one.topics() for one in clients))
            for number in range(self.world.topics.counts[topic])
        }
        if wanted != set(owned):
            self._fail(f"{group}: nobody has {wanted - set(owned)}")
        sizes = [len(one.owned) for one in clients]
        alike = len({frozenset(one.topics()) for one in clients}) == 1
        if alike and group.subscriptions.assignor("uniform") == "uniform" and max(sizes) - min(sizes) > 1:
            self._fail(f"{group} is spread unevenly: {sizes}")
        for partition in wanted:
            end = self.world.end_of(partition)
            if self.committed_at.get((group_id, partition), 0) != end:
                self._fail(
                    f"{partition} of {group_id}: {self.committed_at.get((group_id, partition))} of {end} is committed"
                )


def persisted(shard: GroupShard, group_id: str) -> dict[str, object]:
    """All of a group that its records tell, and what follows from that."""
    group = shard.consumer.get(group_id)
    if group is None:
        return {}
    return {
        "epoch": group.epoch,
        "assignment epoch": group.assignment_epoch,
        "time of the assignment": group.assigned_at,
        "metadata hash": group.metadata_hash,
        "regular expressions": dict(group.regexes),
        "subscriptions": group.subscriptions,
        "static members": dict(group.static_ids),
        "target": {member_id: dict(target) for member_id, target in group.target.items()},
        "metadata": {member_id: member.metadata for member_id, member in group.members.items()},
        "current": {member_id: member.current for member_id, member in group.members.items()},
        "state": group.state,
        "holders": len(group.ownership),
    }
