"""What topics get of an aggregate's groups, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.spark.formats.registry_encoder import RegistryWriting


@dataclass(frozen=True)
class WindowEnd:
    """A column that outputs have: a window's end, by its start and its size (ms)."""

    name: str
    size: int


@dataclass(frozen=True)
class GroupOutput:
    """A topic that gets an aggregate's groups.

    Attributes:
        format: of the value.
        key: columns of the key (`Route.TEXT`); None for the store's.
        columns: those of the value.
        schema: of the group's columns and the results, as Spark's JSON; the window's start and end aren't in it.
        avro_schema: the value's; None for the one that follows from the columns.
        windowed: whether keys of the store begin with a window's start.
        end: the column that has the window's end.
        plain_decimals: see `key_texts`.
        registry: the value's registered schema, whose id each begins with.
        delimiter: between the fields of CSV.
    """

    topic: str
    format: str
    key: tuple[str, ...] | None
    columns: tuple[str, ...]
    schema: str
    avro_schema: str | None = None
    windowed: bool = False
    end: WindowEnd | None = None
    plain_decimals: bool = True
    registry: RegistryWriting | None = None
    delimiter: str = ","
