"""What joins of tables do, as data: see `kohort.spark.jobs.processors` for how.

Sides are told apart by `SIDE`, rows that are gone by `_deleted`. Columns are called as in the rows that are processed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kohort.spark.program.processor_specs import Operation

NUMBER: Final = "_number"
"""BIGINT: of a left row's upsert in a join by foreign key, and of what is answered to it."""
FOUND: Final = "_found"
"""BOOLEAN: of an answer in a join by foreign key, whether there is a right row."""
GIVEN: Final = "_given"
"""BOOLEAN: of a left row that is kept in a join by foreign key, whether the result has a row for it."""
FOREIGN: Final = "foreign"
COUNTER: Final = "counter"
SUBSCRIBERS: Final = "subscribers"
"""What states of joins by foreign key are called: the foreign key of each left row, the next number, and who is
answered when a right row changes."""
SINCE: Final = "_since"
"""BIGINT: from when on a version of a table's row is valid, in ms. TIMESTAMP where it is kept."""
VERSIONS: Final = "versions"
ENDING: Final = "ending"
PENDING: Final = "pending"
"""What states of joins as of a time are called: versions of the table's rows, when some of a key will have ended, and
rows of the stream that wait."""


@dataclass(frozen=True)
class TableJoin(Operation):
    """Two tables by their keys.

    Attributes:
        on: the key's columns.
        left, right: the other columns of each side.
        how: "inner", "left" or "outer".
    """

    on: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    how: str

    what = "join"
    kind = "KTABLE-JOIN"

    @property
    def identity(self) -> list[object]:
        """What was given before is another table with another `how`."""
        return ["table join", self.how]


@dataclass(frozen=True)
class StreamTableJoin(Operation):
    """A stream and a table by the table's key.

    Attributes:
        on: the key's columns.
        stream: the stream's columns, those of `on` too.
        added: the table's that are added.
        how: "inner" or "left".
    """

    on: tuple[str, ...]
    stream: tuple[str, ...]
    added: tuple[str, ...]
    how: str

    what = "join"

    @property
    def kind(self) -> str:
        """As topologies are described."""
        return "KSTREAM-LEFTJOIN" if self.how == "left" else "KSTREAM-JOIN"

    @property
    def identity(self) -> list[object]:
        """Only the table is kept, so `how` doesn't matter."""
        return ["stream-table join"]


@dataclass(frozen=True)
class AsOfJoin(Operation):
    """A stream and the versions of a table.

    Attributes:
        on: the key's columns.
        stream: the stream's columns, those of `on` too.
        added: the table's that are added.
        how: "inner" or "left".
        history_ms: how far versions go back behind the lesser of both sides' largest times.
        grace_ms: how long rows wait, by the stream's largest time.
    """

    on: tuple[str, ...]
    stream: tuple[str, ...]
    added: tuple[str, ...]
    how: str
    history_ms: int
    grace_ms: int

    what = "join_as_of"

    @property
    def kind(self) -> str:
        """As topologies are described."""
        return "KSTREAM-LEFTJOIN-AS-OF" if self.how == "left" else "KSTREAM-JOIN-AS-OF"

    @property
    def identity(self) -> list[object]:
        """With another history other versions are there from then on, with another grace rows wait as long."""
        return ["join as of"]


@dataclass(frozen=True)
class ForeignKeySubscriptions(Operation):
    """The first step of a join by foreign key: left rows by their own key.

    Attributes:
        key: of the left table.
        foreign: the left columns that are the right table's key.
    """

    key: tuple[str, ...]
    foreign: tuple[str, ...]

    what = "join"
    kind = "KTABLE-FK-JOIN-SUBSCRIPTION"

    @property
    def identity(self) -> list[object]:
        """What each row is bound to depends on which columns say so."""
        return ["foreign key subscriptions", *self.foreign]


@dataclass(frozen=True)
class ForeignKeyAnswers(Operation):
    """The second step of a join by foreign key: subscriptions, and right rows, by the right key `on`."""

    on: tuple[str, ...]

    what = "join"
    kind = "KTABLE-FK-JOIN-ANSWER"

    @property
    def identity(self) -> list[object]:
        """Nothing changes what it keeps."""
        return ["foreign key answers"]


@dataclass(frozen=True)
class ForeignKeyResults(Operation):
    """The third step of a join by foreign key: numbered left rows, and answers, by the left key.

    Attributes:
        key: of the left table.
        foreign: those columns of the foreign key that aren't in `key`.
        left, right: the columns of each side that the result has beside the key.
        how: "inner" or "left".
    """

    key: tuple[str, ...]
    foreign: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    how: str

    what = "join"
    kind = "KTABLE-FK-JOIN-OUTPUT"

    @property
    def identity(self) -> list[object]:
        """What was given before is another table with another `how`."""
        return ["foreign key results", self.how]
