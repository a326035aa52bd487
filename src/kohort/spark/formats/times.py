"""How a source writes its times: as numbers since 1970, or as texts in ISO 8601 or by a pattern, in some zone."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.formats.byte_columns import Bools, ByteColumn, Ints, byte_column
from kohort.spark.formats.interfaces import FormatError
from kohort.spark.formats.text_kernels import read_timestamps
from kohort.spark.formats.time_patterns import compiled_pattern, read_by_pattern

FIRST_US: Final = -62_135_596_800_000_000
LAST_US: Final = 253_402_300_799_999_999
"""The years 1 to 9999, in µs since 1970."""

_UNITS: Final = {"timestamp_seconds": 6, "timestamp_millis": 3, "timestamp_micros": 0}
"""Formats of numbers, as Spark's functions are called; a unit is 10^… µs."""
_NAMES: Final = {6: "seconds", 3: "milliseconds", 0: "microseconds"}
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?")
_LONGEST: Final = 60
_RULED_US: Final = 2_145_916_800_000_000  # 2038: tables of zones end before it, and go on with rules
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_US: Final = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class TimeFormats:
    """The formats of a source's TIMESTAMP columns.

    Attributes:
        formats: by column: "at", or "order.at" of a struct. One holds for what is in the column, too; "" for all that
            have none. Without any, times are in ISO 8601.
        zone: of times that don't say theirs: a name, as "America/New_York", or an offset, as "+02:00".
    """

    formats: tuple[tuple[str, str], ...] = ()
    zone: str = "UTC"

    def of(self, name: str) -> str:
        """The format of a column, or of what is in it; "" for ISO 8601."""
        known = dict(self.formats)
        while name not in known and "." in name:
            name = name.rpartition(".")[0]
        return known.get(name, known.get("", ""))


ISO: Final = TimeFormats()


class Counted:
    """Times that are numbers since 1970, or texts of such. Fractions count down to microseconds."""

    def __init__(self, scale: int) -> None:
        self.scale = scale
        self.wanted = f"a time in {_NAMES[scale]} since 1970"

    def one(self, value: Any) -> int | None:
        """The µs of a JSON value, or None if it is no such time, or one beyond the years 1 to 9999."""
        text = getattr(value, "text", value)
        if isinstance(text, int) and not isinstance(text, bool):
            text = str(text) if abs(text) < 2**64 else ""
        if not isinstance(text, str) or len(text) > _LONGEST or not _NUMBER.fullmatch(text):
            return None
        micros = int(Decimal(text).scaleb(self.scale))
        return micros if FIRST_US <= micros <= LAST_US else None


class Written:
    """Times that are texts: in ISO 8601, or by a pattern; in a zone, unless they say theirs."""

    def __init__(self, pattern: str, zone: str) -> None:
        self._operations = compiled_pattern(pattern) if pattern else None
        self._zone = zone
        self.wanted = f"a time such as {pattern or '2013-01-31T05:00:00Z'}"

    def read(self, texts: ByteColumn) -> tuple[Ints, Bools]:
        """The times in µs, and which texts are none. (They may be in another of ISO's forms, which `one` knows.)"""
        rows = len(texts.starts)
        micros, bad = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        has_offset = np.zeros(rows, np.bool_)
        where = texts.data, texts.starts, texts.sizes, texts.there
        if self._operations is None:
            read_timestamps(*where, micros, has_offset, bad)
        else:
            read_by_pattern(*where, self._operations, micros, has_offset, bad)
        local = texts.there & ~has_offset & ~bad
        if self._zone != "UTC" and local.any():
            micros[local] = _in_zone(micros[local], self._zone)
        return micros, bad | (micros < FIRST_US) | (micros > LAST_US)

    def one(self, value: Any) -> int | None:
        """The µs of a JSON value, or None if it is no such time."""
        if not isinstance(value, str):
            return None
        try:
            micros, bad = self.read(byte_column(pa.array([value])))
        except UnicodeEncodeError:  # half a pair of surrogates
            return None
        if not bad[0]:
            return int(micros[0])
        read = self._iso(value) if self._operations is None else None
        return None if read is None or not FIRST_US <= read <= LAST_US else read

    def _iso(self, text: str) -> int | None:
        """Of ISO's forms those that are rare, as 2013-01-31 or 20130131T0500."""
        try:
            time = datetime.datetime.fromisoformat(text)
        except ValueError:
            return None
        if time.tzinfo is not None:
            return (time - _EPOCH.replace(tzinfo=datetime.UTC)) // _US
        local = np.array([(time - _EPOCH) // _US], np.int64)
        return int((_in_zone(local, self._zone) if self._zone != "UTC" else local)[0])


@lru_cache(maxsize=64)
def time_format(formats: TimeFormats, name: str) -> Counted | Written:
    """How the times of a column are read.

    Raises:
        FormatError: a pattern that can't be read by.
    """
    given = formats.of(name)
    return Counted(_UNITS[given]) if given in _UNITS else Written(given, formats.zone)


def check_times(formats: TimeFormats) -> None:
    """Refuse formats and zones that can't be.

    Raises:
        FormatError: there is one.
    """
    for name, _ in formats.formats:
        time_format(formats, name)
    if formats.zone == "UTC":  # which takes no table of zones: a small machine has none
        return
    try:
        _in_zone(np.zeros(1, np.int64), formats.zone)
    except (pa.ArrowException, ValueError, TypeError):
        raise FormatError(
            f'time_zone {formats.zone!r} isn\'t known; write it as "America/New_York" or "+02:00"'
        ) from None


def guessed(value: Any) -> tuple[str, str] | None:
    """What a number that stands for a time is likely to count, if it lies between 1973 and 5138, and its format."""
    text = getattr(value, "text", value)
    if isinstance(text, str) and len(text) <= _LONGEST and _NUMBER.fullmatch(text):
        text = int(Decimal(text))
    if isinstance(text, bool) or not isinstance(text, int):
        return None
    for given, scale in _UNITS.items():
        if 10**8 <= abs(text) * 10**scale // 10**6 < 10**11:
            return _NAMES[scale], given
    return None


def _in_zone(micros: Ints, zone: str) -> Ints:
    """Times of a place's clocks as times in UTC, both in µs since 1970.

    What the clocks show twice is taken for the first time; what they leave out is as much later: as Spark has it.
    """
    clocks = pa.array(micros).cast(pa.timestamp("us"))
    before = pc.assume_timezone(clocks, zone, ambiguous="earliest", nonexistent="earliest")
    left_out = pc.subtract(clocks, pc.local_timestamp(before)).cast(pa.int64()).to_numpy(zero_copy_only=False)
    utc: Ints = before.cast(pa.int64()).to_numpy(zero_copy_only=False) + left_out
    if zone[0] not in "+-" and (late := micros >= _RULED_US).any():
        times, numbers = np.unique(micros[late], return_inverse=True)
        place = ZoneInfo(zone)
        offsets = [
            (_EPOCH + datetime.timedelta(microseconds=int(time))).replace(tzinfo=place).utcoffset() for time in times
        ]
        utc[late] = (times - np.array([(each or _US * 0) // _US for each in offsets], np.int64))[numbers]
    return utc
