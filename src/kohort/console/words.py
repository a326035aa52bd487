"""Numbers, times and names as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from kohort.client.administration.awaited_members import UNDER_WAY
from kohort.client.administration.group_types import GroupDescription
from kohort.console.delay import Delay
from kohort.console.trend import Direction, Trend
from kohort.short_names import short_names

NOTHING: Final = "–"
"""What stands where there is no value."""

_TONES: Final = {"stable": "good", "dead": "bad", "notready": "warn"}

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def number(value: int | None) -> str:
    """1234567 as 1,234,567."""
    return NOTHING if value is None else f"{value:,}"


def size(value: int) -> str:
    """Bytes with the digits that matter: 1.5 MiB."""
    amount, unit = float(value), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return (
        f"{value:,} {unit}" if unit == "bytes" else f"{amount:,.0f} {unit}" if amount >= 100 else f"{amount:.1f} {unit}"
    )


def duration(seconds: float) -> str:
    """Two units at most: 3 min 20 s."""
    left = max(0, round(seconds))
    if left < 1:
        return "less than 1 s"
    if left >= 100 * 86_400:
        return "more than 99 d"
    parts: list[str] = []
    for size, unit in _UNITS:
        whole, left = divmod(left, size)
        if whole or parts:
            parts.append(f"{whole} {unit}" if whole else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def pace(per_second: float) -> str:
    """Records a second, with the digits that matter."""
    size = abs(per_second)
    if not size:
        return "0/s"
    return f"{size:,.0f}/s" if size >= 10 else f"{size:.1f}/s" if size >= 0.1 else f"{size * 60:.1f}/min"


def trend_text(trend: Trend) -> str:
    """A trend in a few words: falling by 120/s, caught up in 3 min 20 s."""
    if trend.per_second is None or trend.direction in (Direction.UNKNOWN, Direction.CAUGHT_UP, Direction.STEADY):
        return trend.direction.value
    text = f"{trend.direction.value} by {pace(trend.per_second)}"
    return text if trend.caught_up_in is None else f"{text}, caught up in {duration(trend.caught_up_in)}"


def delay_text(behind: Delay | None) -> str:
    """A lag in time: 3 min 20 s, or over 20 min."""
    if behind is None:
        return NOTHING
    return f"over {duration(behind.seconds)}" if behind.at_least else duration(behind.seconds)


def moment(ms: int) -> str:
    """A time in ms since 1970, in UTC; -1 stands for none."""
    if ms < 0:
        return NOTHING
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{ms % 1000:03} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def ended(text: str) -> str:
    """`text` with a full stop, unless it is a question; without a capital: it may begin with a name."""
    return text if text.endswith("?") else f"{text}."


def sentence(text: str) -> str:
    """`text`, which begins with no name, with a capital and a full stop; "" stays."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def state_tone(state: str) -> str:
    """The tone of a group's state, whatever its case: "good", "warn", "bad", or "" for none."""
    known = state.casefold()
    return "warn" if known in UNDER_WAY else _TONES.get(known, "")


def member_names(group: GroupDescription) -> dict[str, str]:
    """What members are called, by id: by static names, or by short ids."""
    short = short_names(member.member_id for member in group.members)
    return {member.member_id: member.instance_id or short[member.member_id] for member in group.members}


def visible(text: str) -> str:
    """`text` with escapes for characters that would be obeyed instead of shown, such as marks of right-to-left text."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
