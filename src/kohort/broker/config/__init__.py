"""The broker's configuration with Kafka's keys: declarations, sources, validation, DescribeConfigs."""

from kohort.broker.config.change_validation import (
    check_broker_changes,
    check_broker_settings,
    check_client_metrics,
    check_group_configs,
    check_topic_configs,
)
from kohort.broker.config.component_settings import (
    bounded_group_value,
    group_settings,
    group_value,
    log_config,
    streams_settings,
    topic_value,
    transaction_settings,
)
from kohort.broker.config.errors import ConfigError
from kohort.broker.config.settings import Settings

__all__ = [
    "ConfigError",
    "Settings",
    "bounded_group_value",
    "check_broker_changes",
    "check_broker_settings",
    "check_client_metrics",
    "check_group_configs",
    "check_topic_configs",
    "group_settings",
    "group_value",
    "log_config",
    "share_settings",
    "streams_settings",
    "topic_value",
    "transaction_settings",
]
