"""A lock that many threads share, or one has alone, until it is closed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class ReadersWriterLock:
    """Shared access and exclusive access. Who waits for exclusive access goes before those who come for shared access.

    Not reentrant: a thread that has access must not ask again.

    Args:
        closed_error: makes the error for those who come, or still wait, once it is closed.
    """

    def __init__(self, closed_error: Callable[[], Exception]) -> None:
        self._closed_error = closed_error
        self._changed = threading.Condition()
        self._sharing = 0
        self._exclusive = False  # a thread has exclusive access, or waits for those who share to leave
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def check_open(self) -> None:
        """Raises `closed_error` if it is closed: for who has access, and should end soon then."""
        if self._closed:
            raise self._closed_error()

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Access together with others."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._exclusive)
            self.check_open()
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Access alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._exclusive)
            self.check_open()
            self._exclusive = True
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or not self._sharing)
                self.check_open()
            yield
        finally:
            with self._changed:
                self._exclusive = False
                self._changed.notify_all()

    def close(self) -> bool:
        """Lets nobody in any more, and returns True once all are out; False if it was closed already."""
        with self._changed:
            if self._closed:
                return False
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._sharing and not self._exclusive)
            return True
