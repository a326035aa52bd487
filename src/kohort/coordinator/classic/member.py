"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Container


class Member:
    """A member: what it said when it joined, its assignment, and the state of its session.

    Attributes:
        instance_id: name of a static member (KIP-345); None for a dynamic one.
        client_host: address it joined from.
        session_timeout_ms: it is removed when no heartbeat comes for so long.
        rebalance_timeout_ms: how long it has to rejoin in a rebalance (KIP-62).
        protocols: its metadata for each protocol that it supports, the preferred first.
        assignment: the leader's assignment in the current generation; empty before that.
        is_new: it waits for the answer to its first join, so it doesn't know its id and sends no heartbeats.
    """

    __slots__ = (
        "assignment", "client_host", "client_id", "heartbeat_satisfied", "instance_id", "is_leaving", "is_new",
        "member_id", "protocols", "rebalance_timeout_ms", "session_timeout_ms",
    )  # fmt: skip

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: dict[str, bytes],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.heartbeat_satisfied = False
        self.is_leaving = False

    def has_protocols(self, protocols: dict[str, bytes]) -> bool:
        """Whether these are the member's protocols: same metadata, same order of preference."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: Container[str]) -> str:
        """The candidate that the member prefers; it must support at least one of them."""
        return next(name for name in self.protocols if name in candidates)
