"""Mutated frames before it is known who sends them, straight into connections, without sockets.

No API is answered but those that are open to all, nobody becomes known, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.authentication import OPEN_TO_ALL
from kohort.broker.config.listeners import SecurityProtocol
from kohort.broker.connection import Connection
from kohort.broker.handlers import served_apis
from kohort.broker.scram_users import UserChange
from kohort.broker.server import Server
from kohort.protocol.messages import api
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.conftest import serving
from tests.broker.raw import frame
from tests.broker.test_authentication import CREDENTIAL, SASL, SHA_256
from tests.protocol.everything import RandomMessages

AT_ONCE = 40
TURNS = 10_000
MEMORY = 48 * 1024 * 1024
"""Bytes that the process may grow by; it is 1 to 3 MB."""


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self, number: int) -> None:
        super().__init__({"peername": (f"10.0.0.{number % 250}", number), "socket": self})
        self.sent = bytearray()
        self.connection: Connection | None = None

    def fileno(self) -> int:
        return 20

    def write(self, data: Any) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.connection is None

    def close(self) -> None:
        if self.connection is not None:
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)
            self.connection = None

    abort = close

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def get_write_buffer_size(self) -> int:
        return 0


def raw(token: bytes) -> bytes:
    return struct.pack(">i", len(token)) + token


def corpus() -> tuple[list[bytes], list[bytes]]:
    """Frames of an authentication, and of all other APIs in all versions."""
    tokens = (b"\0alice\0wrong", b"\0\0", b"n,,n=alice,r=x", b"n,a=alice,n=alice,r=x", b"y,,n=nobody,r=x",
              b"n,,n=id,r=x,tokenauth=true", b"c=biws,r=x,p=AAAA", b"n,,n=alice,r=x,m=1", b"")  # fmt: skip
    own = [frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), each) for each in range(6)]
    own += [
        frame(SaslHandshakeRequest(mechanism=mechanism), version)
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "GSSAPI")
        for version in (0, 1)
    ]
    own += [frame(SaslAuthenticateRequest(auth_bytes=token), version) for token in tokens for version in (0, 1, 2)]
    own += map(raw, tokens)
    messages = RandomMessages(7)
    others = [
        frame(messages.message(api(key).request, version), version)
        for key, served in served_apis()
        for version in range(served.versions[0], served.versions[1] + 1)
    ]
    return own, others


class Fuzz:
    """Sends frames to a server; the same ones for a seed."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.draw = random.Random(seed)
        self.own, self.others = corpus()
        self.frames = 0
        self.answers = 0

    def mutated(self) -> bytes:
        draw = self.draw
        data = bytearray(draw.choice(self.own if draw.random() < 0.75 else self.others))
        for _ in range(draw.choice((0, 0, 1, 1, 2, 8))):
            at = draw.randrange(len(data))
            match draw.randrange(5):
                case 0:
                    data[at] ^= 1 << draw.randrange(8)
                case 1:
                    data[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
                case 2:
                    del data[at : at + draw.randrange(1, 8)]
                case 3:
                    data[at:at] = draw.randbytes(draw.randrange(1, 8))
                case 4:
                    data += data[at : at + 100]
            data = data or bytearray(b"\0")
        if draw.random() < 0.8:  # else its size is wrong, too
            data[:4] = struct.pack(">i", max(0, len(data) - 4))
        return bytes(data)

    async def round(self) -> None:
        """Some connections at a time, each with some frames, in pieces."""
        loop = asyncio.get_running_loop()
        wires = []
        for _ in range(AT_ONCE):
            wire = Wire(self.frames)
            connection = wire.connection = Connection(self.server, self.server.listeners[0])
            connection.connection_made(wire)
            wires.append((wire, connection))
            frames = [self.mutated() for _ in range(self.draw.randrange(1, 5))]
            self.frames += len(frames)
            data = b"".join(frames)
            while data and wire.connection is not None:
                size = len(data) if self.draw.random() < 0.5 else self.draw.randrange(1, len(data) + 1)
                connection.data_received(data[:size])
                data = data[size:]
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if all(wire.is_closing() or not connection.busy for wire, connection in wires):
                break
        for wire, connection in wires:
            assert not connection.session.known
            assert connection.session.principal == "User:ANONYMOUS"
            self.answers += bool(wire.sent)
            assert self.server.broker.cluster_id.encode() not in wire.sent
            wire.close()
        loop.call_soon(int)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.check()

    def check(self) -> None:
        server = self.server
        answered = {key for key, counts in enumerate(server.broker.metrics.apis) if any(counts.buckets)}
        assert answered <= OPEN_TO_ALL
        assert {key >> 16 for key in server.dispatcher._routes} <= OPEN_TO_ALL
        assert not server._connections
        assert not server._per_ip
        assert not len(server.newcomers)
        assert (server.memory.used, server.strangers_memory.used) == (0, 0)


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def fuzz(server: Server, seed: int, frames: int) -> None:
    assert server.listeners[0].protocol is SecurityProtocol.SASL_PLAINTEXT
    server.broker.scram_users.alter([UserChange("alice", SHA_256.number, CREDENTIAL)])
    work = Fuzz(server, seed)
    before = 0
    while work.frames < frames:
        await work.round()
        before = before or (resident() if work.frames > 2000 else 0)
    assert work.answers > work.frames / 20
    if before:
        assert resident() - before < MEMORY


def run(directory: Path, seed: int, frames: int) -> None:
    async def main() -> None:
        async with serving(directory, *SASL, "connection.failed.authentication.delay.ms=0") as server:
            await fuzz(server, seed, frames)

    asyncio.run(main())


def test_mutated_frames_of_strangers(tmp_path: Path) -> None:
    run(tmp_path, 1, 2000)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_very_many_mutated_frames_of_strangers(tmp_path: Path) -> None:
    run(tmp_path, 2, 100_000)
