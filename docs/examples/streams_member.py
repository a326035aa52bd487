"""Instances of this program share the partitions of a topic, as members of one streams group.

Start several, stop one with Ctrl+C, kill another: its partitions go on elsewhere, from where it had committed.

    kohort topics create lines --partitions 4
    python streams_member.py localhost:9092 lines
"""

from __future__ import annotations

import asyncio
import signal
import sys

from kohort.client import Consumer, StreamsMember
from kohort.client.errors import CommitFailedError
from kohort.client.streams_member import Assigned, Lost, Revoked, Role, StatusesChanged, Subtopology, TaskId, Topology


async def run(task: TaskId, member: StreamsMember, servers: str, topology: Topology) -> None:
    """Run a task until it's cancelled. If it fails, the instance leaves, and others get its tasks."""
    try:
        await work(task, member, servers, topology)
    except CommitFailedError:
        pass  # the group has gone on without the instance, which hears of that next
    except Exception as error:
        print(f"task {task} failed: {error!r}", file=sys.stderr)
        member.leave()


async def work(task: TaskId, member: StreamsMember, servers: str, topology: Topology) -> None:
    """Print a task's lines, and commit how far it is."""
    partitions = topology.inputs(task)
    async with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        for partition, committed in (await member.committed(partitions)).items():
            if committed is not None:
                consumer.seek(partition, committed.offset)
        while True:
            records = await consumer.poll()
            for record in records:
                print(f"task {task}: {record.value.decode()}")
            if records:
                await member.commit({partition: consumer.position(partition) for partition in partitions})


async def main(servers: str, topic: str) -> None:
    """Be a member until the group, or Ctrl+C, says that it is enough."""
    topology = Topology({"0": Subtopology(source_topics=[topic])})
    running: dict[TaskId, asyncio.Task[None]] = {}
    async with StreamsMember(servers, f"print-{topic}", topology) as member:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, member.leave)
        async for event in member:
            match event:
                case Assigned(tasks):
                    for task, role in tasks.items():
                        if role is Role.ACTIVE:  # without state there are no other roles
                            running[task] = asyncio.create_task(run(task, member, servers, topology))
                case Revoked(tasks) | Lost(tasks):
                    for task in tasks:
                        running[task].cancel()
                        await asyncio.wait([running.pop(task)])
                        member.closed(task)
                case StatusesChanged(statuses):
                    for status in statuses:
                        print(f"the group says: {status.detail}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
