"""A streams member in a process of its own, which can be killed and paused: it writes "assigned" when it has tasks.

python -m tests.client.streams.member_process SERVERS asks|asks-not
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from kohort.client.streams_member import Assigned, Lost, Revoked, StreamsMember
from tests.client.streams.test_streams_member import TOPOLOGY

ASKS: dict[str, Any] = {"disconnect_timeout_ms": 1_000, "held_heartbeats": True}


async def main(servers: str, asks: str) -> None:
    async with StreamsMember(servers, "app", TOPOLOGY, **(ASKS if asks == "asks" else {})) as member:
        async for event in member:
            match event:
                case Assigned():
                    sys.stdout.write("assigned\n")
                    sys.stdout.flush()
                case Revoked(tasks) | Lost(tasks):
                    member.closed(*tasks)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
