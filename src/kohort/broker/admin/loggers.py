"""The broker's loggers as resources of type BROKER_LOGGER (KIP-412). A restart resets their levels."""

from __future__ import annotations

import logging
from typing import Final

from kohort.protocol.errors import ErrorCode, KafkaError

BROKER_LOGGER: Final = 8
"""The resource type, as Kafka numbers it."""

_ROOT: Final = "kohort"
_LEVELS: Final = {
    "FATAL": logging.CRITICAL, "ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.INFO,
    "DEBUG": logging.DEBUG, "TRACE": logging.DEBUG,
}  # fmt: skip
"""Kafka's levels and Python's; nothing is below DEBUG."""


def logger_levels() -> dict[str, str]:
    names = sorted(
        name
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and (name == _ROOT or name.startswith(f"{_ROOT}."))
    )
    return {name: _shown(logging.getLogger(name).getEffectiveLevel()) for name in names}


def levels_from_changes(changes: dict[str, str | None]) -> dict[str, int]:
    """Returns the level to set for each logger; 0 for None, which inherits the parent's.

    Raises:
        KafkaError: INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST if the root would have no level.
    """
    known = logger_levels()
    levels = {}
    for name, level in changes.items():
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if level is not None and level.upper() not in _LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level}: it is none of {', '.join(_LEVELS)}.",
            )
        if level is None and name == _ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The level of the root logger {_ROOT} can't be deleted.")
        levels[name] = logging.NOTSET if level is None else _LEVELS[level.upper()]
    return levels


def set_levels(levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def _shown(level: int) -> str:
    return next((name for name, ours in _LEVELS.items() if level >= ours), "DEBUG")
