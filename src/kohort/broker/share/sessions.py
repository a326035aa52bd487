"""Share sessions: what a member of a share group fetches from, so that its requests carry only changes.

A session is that of a member in a group, and lives as long as the connection that opened it:

| Epoch of the request | ShareFetch | ShareAcknowledge |
| --- | --- | --- |
| 0 | opens a session in place of an older one; without acknowledgements | INVALID_SHARE_SESSION_EPOCH |
| the session's | adds and forgets partitions; the epoch rises by 1 | the epoch rises by 1 |
| -1 | acknowledges; then the session ends, and what the member holds is released | the same |
| another | INVALID_SHARE_SESSION_EPOCH | INVALID_SHARE_SESSION_EPOCH |

Without a session, all but epoch 0: SHARE_SESSION_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = ["FINAL", "INITIAL", "PartitionKey", "ShareSession", "ShareSessions"]

INITIAL: Final = 0
FINAL: Final = -1
_MAX_EPOCH: Final = 2**31 - 1

PartitionKey = tuple[UUID, int]
"""A partition: its topic's id and its number."""


@dataclass(slots=True, eq=False)
class ShareSession:
    """A member's partitions, in the order they were added.

    Attributes:
        epoch: of the member's next request.
        connection: the connection that opened it.
        partitions: each with whether the next response must have it, as the last had an error for it.
    """

    group_id: str
    member_id: str
    connection: Hashable
    epoch: int = INITIAL
    partitions: dict[PartitionKey, bool] = field(default_factory=dict)

    def rotated(self, epoch: int) -> list[PartitionKey]:
        """The partitions, beginning elsewhere with each epoch of a request: none is always the last."""
        partitions = list(self.partitions)
        at = epoch % len(partitions) if partitions and epoch > INITIAL else 0
        return partitions[at:] + partitions[:at]

    def must_respond(self, key: PartitionKey, *, has_records: bool, failed: bool) -> bool:
        """Whether a response has the partition: with records, an error, or for the first time without the error."""
        failed_before = self.partitions.get(key, False)
        if key in self.partitions:
            self.partitions[key] = failed
        return has_records or failed or failed_before

    def _advance(self) -> None:
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1


class ShareSessions:
    """The share sessions of a broker.

    Args:
        limit: the most sessions (`group.share.max.share.sessions`).
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._of_connection: dict[Hashable, dict[tuple[str, str], ShareSession]] = {}
        self._of_group: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> int:
        """The number of partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def open(
        self, group_id: str, member_id: str, connection: Hashable, partitions: Iterable[PartitionKey]
    ) -> ShareSession:
        """Opens a session in place of the member's older one.

        Args:
            connection: the session ends with it.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        self.remove(group_id, member_id)
        if len(self._sessions) >= self.limit:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group_id, member_id, connection, 1, dict.fromkeys(partitions, False))
        key = group_id, member_id
        self._sessions[key] = session
        self._of_connection.setdefault(connection, {})[key] = session
        self._of_group[group_id] = self._of_group.get(group_id, 0) + 1
        return session

    def get(self, group_id: str, member_id: str) -> ShareSession:
        """A member's session.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND.
        """
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def is_open(self, session: ShareSession) -> bool:
        """Whether a session has neither ended nor been replaced."""
        return self._sessions.get((session.group_id, session.member_id)) is session

    def advance(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        added: Iterable[PartitionKey] = (),
        forgotten: Iterable[PartitionKey] = (),
    ) -> ShareSession:
        """Goes on with a session: adds partitions, then forgets some.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(group_id, member_id)
        if epoch != session.epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        for key in added:
            session.partitions.setdefault(key, False)
        for key in forgotten:
            session.partitions.pop(key, None)
        session._advance()
        return session

    def remove(self, group_id: str, member_id: str) -> ShareSession | None:
        """Ends a member's session, and returns it; None if there is none."""
        key = group_id, member_id
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        of_connection = self._of_connection[session.connection]
        del of_connection[key]
        if not of_connection:
            del self._of_connection[session.connection]
        self._of_group[group_id] -= 1
        if not self._of_group[group_id]:
            del self._of_group[group_id]
        return session

    def disconnected(self, connection: Hashable) -> list[ShareSession]:
        """Ends the sessions that a connection opened, and returns them."""
        keys = list(self._of_connection.get(connection, ()))
        return [session for key in keys if (session := self.remove(*key)) is not None]

    def clear(self) -> None:
        """Ends all sessions."""
        self._sessions.clear()
        self._of_connection.clear()
        self._of_group.clear()

    def has_members(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return group_id in self._of_group
