"""What share groups need of the broker: its topics, their settings, and who hears of members that are fenced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kohort.coordinator.modern.cluster import Cluster, NoTopics
from kohort.coordinator.share.settings import ShareSettings


def _defaults(group_id: str) -> ShareSettings:
    del group_id
    return ShareSettings()


def _nobody(group_id: str, member_id: str) -> None:
    del group_id, member_id


@dataclass(frozen=True, slots=True)
class ShareEnvironment:
    """The environment; by default without topics and with Kafka's default settings.

    Attributes:
        settings_of: returns the settings of a group, by id. Called for each heartbeat, so it should be quick.
        member_fenced: hears group and member id when a member was removed, as it sent no heartbeats.
    """

    settings_of: Callable[[str], ShareSettings] = _defaults
    cluster: Cluster = field(default_factory=NoTopics)
    member_fenced: Callable[[str, str], None] = _nobody
