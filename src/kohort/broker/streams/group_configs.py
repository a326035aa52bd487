"""The settings of each streams group, ready for the next heartbeat."""

from __future__ import annotations

from kohort.broker.config import Settings, streams_settings
from kohort.broker.topics import ConfigResource, Topics
from kohort.coordinator.streams.settings import StreamsSettings


class StreamsGroupConfigs:
    """The settings of streams groups: the broker's, or those of a group with a configuration of its own."""

    def __init__(self, settings: Settings, topics: Topics) -> None:
        self._topics = topics
        self.configure(settings)

    def of(self, group_id: str) -> StreamsSettings:
        """A group's settings; the same object until they change."""
        return self._own.get(group_id, self._default)

    def configure(self, settings: Settings) -> None:
        """Applies a new broker configuration, and reads all group configurations."""
        self._settings = settings
        self._default = streams_settings(settings, {})
        self._own: dict[str, StreamsSettings] = {}
        for group_id in self._topics.config_names(ConfigResource.GROUP):
            self.configure_group(group_id)

    def configure_group(self, group_id: str) -> None:
        """Reads a group's configuration again."""
        configs = self._topics.configs(ConfigResource.GROUP, group_id)
        if configs:
            self._own[group_id] = streams_settings(self._settings, configs)
        else:
            self._own.pop(group_id, None)
