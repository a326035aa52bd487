"""What each streams group is configured with, ready for the next heartbeat."""

from __future__ import annotations

from kohort.broker.config import Settings, streams_settings
from kohort.broker.topics import ConfigResource, Topics
from kohort.coordinator.streams.settings import StreamsSettings

__all__ = ["StreamsGroupConfigs"]


class StreamsGroupConfigs:
    """The settings of all streams groups. Most have the broker's; the others are made when they are changed."""

    def __init__(self, settings: Settings, topics: Topics) -> None:
        self._topics = topics
        self.configure(settings)

    def of(self, group_id: str) -> StreamsSettings:
        """The settings of a group; the same object as long as they don't change."""
        return self._own.get(group_id, self._default)

    def configure(self, settings: Settings) -> None:
        """The broker's configuration is another, or all configurations of groups have just been read."""
        self._settings = settings
        self._default = streams_settings(settings, {})
        self._own: dict[str, StreamsSettings] = {}
        for group_id in self._topics.config_names(ConfigResource.GROUP):
            self.configure_group(group_id)

    def configure_group(self, group_id: str) -> None:
        """The configuration of a group is another."""
        configs = self._topics.configs(ConfigResource.GROUP, group_id)
        if configs:
            self._own[group_id] = streams_settings(self._settings, configs)
        else:
            self._own.pop(group_id, None)
