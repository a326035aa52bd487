"""The broker's configuration as it is now."""

from __future__ import annotations

from collections.abc import Callable

from kohort.broker.config import Settings
from kohort.broker.topics import ConfigResource, Topics


class DynamicConfig:
    """The broker's configuration, where values that are set at run time override those of the start.

    Attributes:
        current: the settings now.
        on_changed: called with the new settings.
    """

    def __init__(self, settings: Settings, topics: Topics) -> None:
        self._static = settings
        self._topics = topics
        self.current = settings
        self.on_changed: list[Callable[[Settings], None]] = []

    def config_changed(self, kind: ConfigResource, name: str) -> None:
        del name
        if kind is ConfigResource.BROKER:
            self.update()

    def update(self) -> None:
        """Takes up what is set at run time, for all brokers and this one."""
        self.current = self._static.with_dynamic(
            self._topics.configs(ConfigResource.BROKER, ""),
            self._topics.configs(ConfigResource.BROKER, str(self._topics.node_id)),
        )
        for listener in self.on_changed:
            listener(self.current)
