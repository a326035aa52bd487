"""The settings of each group of one kind, ready for the next heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from kohort.broker.config import Settings
from kohort.broker.topics import ConfigResource, Topics

T = TypeVar("T")


class GroupConfigs(Generic[T]):
    """The settings of groups: the broker's, or those of a group with a configuration of its own.

    Args:
        make: makes a group's settings from the broker's and from the group's own configuration.
    """

    def __init__(self, settings: Settings, topics: Topics, make: Callable[[Settings, Mapping[str, str]], T]) -> None:
        self._topics = topics
        self._make = make
        self.configure(settings)

    def of(self, group_id: str) -> T:
        """A group's settings; the same object until they change."""
        return self._own.get(group_id, self._default)

    def configure(self, settings: Settings) -> None:
        """Applies a new broker configuration, and reads all group configurations."""
        self._settings = settings
        self._default = self._make(settings, {})
        self._own: dict[str, T] = {}
        for group_id in self._topics.config_names(ConfigResource.GROUP):
            self.configure_group(group_id)

    def configure_group(self, group_id: str) -> None:
        """Reads a group's configuration again."""
        configs = self._topics.configs(ConfigResource.GROUP, group_id)
        if configs:
            self._own[group_id] = self._make(self._settings, configs)
        else:
            self._own.pop(group_id, None)
