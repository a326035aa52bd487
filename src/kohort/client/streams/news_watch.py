"""Held heartbeats, by which a member hears of news at once: when to send one, and what its answer means.

The answer says only whether there is news; an ordinary heartbeat brings it. No socket, clock or randomness.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.client.streams.settings import MemberSettings
from kohort.protocol.heartbeat_wishes import Grant, grant_of
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.statuses import Status

_PAUSE_MS: Final = 50
"""The pause after a failure, or after news that was none; it doubles each time, up to the heartbeat interval."""


class NewsWatch:
    """Whether a held heartbeat is to be sent. All times are ms of one clock, given as `now`."""

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self._granted = False
        self._in_flight = False
        self._fetching = False  # there is news, and the heartbeat that brings it isn't answered yet
        self._in_vain = 0  # failures, and news that was none, in a row
        self._not_before = 0
        self._interval_ms = 0

    @property
    def due_at(self) -> int | None:
        """When to send one; None if none is wanted, if the coordinator holds none, or while one is held."""
        if not self._settings.held_heartbeats or not self._granted or self._fetching or self._in_flight:
            return None
        return self._not_before

    def request(self, epoch: int, endpoint_epoch: int, statuses: Iterable[Status]) -> StreamsGroupHeartbeatRequest:
        """Returns the one that is due. `answered` or `failed` follows.

        Args:
            epoch, endpoint_epoch, statuses: what the member knows.
        """
        wishes = self._settings.wishes(self._interval_ms, {int(status.code) for status in statuses})
        assert wishes is not None, "it asks for held heartbeats"
        self._in_flight = True
        return StreamsGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=endpoint_epoch,
            unknown_tags=wishes.tags(),
        )

    def answered(self, response: StreamsGroupHeartbeatResponse) -> bool:
        """It was answered; returns whether there is news. None is sent then until the news is here.

        An error is news, too: the next heartbeat meets it as well, and knows what to do.
        """
        grant = grant_of(response.unknown_tags)
        self._in_flight = False
        self._fetching = response.error_code != 0 or grant is None or grant.news
        if not self._fetching:
            self._in_vain = 0
        return self._fetching

    def failed(self, now: int) -> None:
        """It could not be sent, or no answer came: none is held before an ordinary heartbeat is answered."""
        self._in_flight = self._granted = False
        self._pause(now)

    def heard(self, grant: Grant | None, now: int, interval_ms: int, *, new: bool) -> None:
        """An ordinary heartbeat was answered.

        Args:
            grant: what came with the answer; None from coordinators that hold no heartbeats.
            interval_ms: the heartbeat interval.
            new: whether it brought something.
        """
        self._granted = grant is not None and grant.max_wait_ms > 0
        self._interval_ms = interval_ms
        if self._fetching:
            self._fetching = False
            if new:
                self._in_vain = 0
            else:
                self._pause(now)

    def lost(self) -> None:
        """An ordinary heartbeat wasn't answered: none is held before one is."""
        self._granted = self._fetching = False

    def _pause(self, now: int) -> None:
        self._not_before = now + min(_PAUSE_MS << min(self._in_vain, 10), self._interval_ms)
        self._in_vain += 1
