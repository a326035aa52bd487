"""What brokers in this process log while a test runs, kept for the report of a test that fails."""

from __future__ import annotations

import functools
import logging
from collections import deque
from typing import Final

__all__ = ["BrokerLog"]

_LOGGERS: Final = ("kohort.authorizer", "kohort.broker", "kohort.coordinator", "kohort.log", "kohort.secure")
_LEVEL: Final = logging.DEBUG - 1
"""A level of our own, so that a level that somebody else sets is told from it; below all that a test may ask for."""

_LINES: Final = 200


class BrokerLog(logging.Handler):
    """Keeps the latest lines from INFO on, whatever level is set.

    Others hear what they would hear without it: a test's `caplog` isn't flooded with what it hasn't asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self._records: deque[tuple[int, logging.LogRecord]] = deque(maxlen=_LINES)
        self._count = 0
        self._held: list[logging.Logger] = []

    @property
    def position(self) -> int:
        """Where the next line will be: for `since`."""
        return self._count

    def since(self, position: int) -> str:
        """The lines from a position on, as far as they are kept."""
        from kohort.broker.logging import PairsFormatter  # late: a run without brokers loads no broker

        formatter = PairsFormatter()
        kept = [record for at, record in list(self._records) if at >= position]
        left_out = self._count - position - len(kept)
        lines = [f"({left_out} lines before these)"] if left_out > 0 else []
        return "\n".join([*lines, *(formatter.format(record) for record in kept)])

    def install(self) -> None:
        """Begins to keep lines. May be called again."""
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            if self not in logger.handlers:
                logger.addHandler(self)
            if logger not in self._held and logger.level == logging.NOTSET and logger.propagate:
                logger.setLevel(_LEVEL)
                logger.propagate = False
                # pytest 9 gives its handler to loggers that don't propagate: it would hear all, and much of it twice.
                setattr(logger, "addHandler", functools.partial(_add_handler, logger))  # noqa: B010
                self._held.append(logger)

    def uninstall(self) -> None:
        """Leaves the loggers as they were."""
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)
        for logger in self._held:
            logger.propagate = True
            vars(logger).pop("addHandler")
            if logger.level == _LEVEL:
                logger.setLevel(logging.NOTSET)
        self._held.clear()

    def handle(self, record: logging.LogRecord) -> bool:
        """Keeps a line, and hands it on to who would have it without us."""
        # Not `emit`, which is called with a lock held: others' handlers are called from here.
        if record.levelno >= logging.INFO:
            self._records.append((self._count, record))
            self._count += 1
        held = any(record.name == logger.name or record.name.startswith(f"{logger.name}.") for logger in self._held)
        if held and record.levelno >= _usual_level(record.name):
            logging.getLogger("kohort").callHandlers(record)
        return True


def _add_handler(logger: logging.Logger, handler: logging.Handler) -> None:
    """Adds a handler to a logger that is held, unless what is handed on reaches it anyhow."""
    above: logging.Logger | None = logging.getLogger("kohort")
    while above is not None:
        if handler in above.handlers:
            return
        above = above.parent
    logging.Logger.addHandler(logger, handler)


def _usual_level(name: str) -> int:
    """The level that a logger would have without us."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if logger.level not in (logging.NOTSET, _LEVEL):
            return logger.level
        logger = logger.parent
    return logging.NOTSET
