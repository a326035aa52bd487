"""The states of a transaction, and all transitions between them.

A transactional id begins Empty. Its producer's first partition opens a transaction (Ongoing). The producer commits or
aborts it, or the coordinator aborts it when the producer is fenced or the transaction times out (PrepareCommit,
PrepareAbort). From then on nothing can change the outcome. When every partition has its marker the transaction is over
(CompleteCommit, CompleteAbort), and the next one may begin. An id that is not used for long expires (Dead).
"""

from __future__ import annotations

import enum
from typing import Final


class TransactionState(enum.IntEnum):
    """Kafka's states, by the numbers they have in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name in Kafka's tools, such as "PrepareCommit"."""
        return self.name.title().replace("_", "")


_S = TransactionState

TRANSITIONS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    # An abort without a partition is a transaction too since KIP-890: it bumps the epoch.
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    # Fencing and aborting are one record here; a log written by Kafka may hold two.
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset(),
}
PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
"""The outcome is decided, and markers are being written."""

ENDED: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""The last transaction is over, and no other has begun."""

IDLE: Final = ENDED | {_S.EMPTY}
"""No transaction is open or ending."""
