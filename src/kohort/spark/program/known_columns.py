"""Columns that a program's text shows without Spark, and names in expressions that are misspelt ones of them.

Spark resolves names when the program is compiled. Where a stream's schema is declared, a name that is nearly a column's
is refused where it is written. What isn't understood here is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError
from kohort.spark.program.written_at import Written, located

if TYPE_CHECKING:
    from kohort.spark.program.sources import SourceDef

_TOKEN: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[0-9][\w.]*|[^\W\d]\w*|->|=>|::|\S""",
    re.DOTALL,
)
_NAME: Final = re.compile(r"[^\W\d]\w*|`(?:[^`]|``)+`")
_DDL_FIELD: Final = re.compile(r"\s*([^\W\d]\w*|`[^`]+`)\s*(?::|\s)\s*\S")
_ALIASED: Final = re.compile(r".*\sAS\s+([^\W\d]\w*|`[^`]+`)\s*", re.DOTALL | re.IGNORECASE)

_TEXT: Final = """
    ALL AND ANTI ANY ARRAY AS ASC AT BETWEEN BIGINT BINARY BOOLEAN BOTH BY BYTE CASE CAST CHAR COLLATE CROSS
    CUBE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATE DAY DAYOFWEEK DAYOFYEAR DAYS DEC DECIMAL
    DESC DISTINCT DIV DOUBLE DOW DOY ELSE END ESCAPE EXCEPT EXISTS EXTRACT FALSE FILTER FIRST FLOAT FOR FROM
    FULL GLOBAL GROUP HAVING HOUR HOURS ILIKE IN INNER INT INTEGER INTERVAL INTO IS ISODOW ISOYEAR JOIN LAST
    LEADING LEFT LIKE LIMIT LOCALTIMESTAMP LONG MAP MICROSECOND MICROSECONDS MILLISECOND MILLISECONDS MINUTE
    MINUTES MONTH MONTHS NATURAL NOT NULL NULLS NUMERIC ON OR ORDER OUTER OVER OVERLAY PARTITION PIVOT POSITION
    QUARTER QUARTERS RANGE REAL REGEXP RESPECT RIGHT RLIKE ROW ROWS SECOND SECONDS SELECT SEMI SESSION
    SESSION_USER SHORT SMALLINT SOME SPARK_CATALOG STRING STRUCT SUBSTRING SYSTEM TABLE THEN TIME TIMESTAMP
    TIMESTAMP_LTZ TIMESTAMP_NTZ TINYINT TO TRAILING TRIM TRUE TRY_CAST UNION UNIQUE UNKNOWN USER USING VALUES
    VARCHAR VARIANT VOID WEEK WEEKS WHEN WHERE WINDOW WITH WITHIN WITHOUT XOR YEAR YEAROFWEEK YEARS ZONE
"""
_WORDS: Final = frozenset(_TEXT.split())
"""Words of Spark's expressions, units and types, that are no names where they stand alone."""
_NOT_READ: Final = frozenset(("->", "SELECT", "OVER"))


def declared(source: SourceDef) -> tuple[str, ...] | None:
    """The columns that a source's rows have, by what is declared of it; None if that isn't all."""
    if source.registry is not None or source.key_format is not None or source.schema is None:
        return None
    names = ddl_names(source.schema) if isinstance(source.schema, str) else getattr(source.schema, "names", None)
    if names is None:
        return None
    return tuple(names) if source.derived is None else (*names, source.derived.name)


def ddl_names(schema: str) -> tuple[str, ...] | None:
    """The names of columns in DDL, "origin STRING, dep_delay DOUBLE"; None if it can't be read here."""
    fields, depth, begun = [], 0, 0
    tokens = [(each.group(), each.start()) for each in _TOKEN.finditer(schema)]
    for text, at in tokens:
        depth += (text in "<(") - (text in ">)") if len(text) == 1 else 0
        if text == "," and not depth:
            fields.append(schema[begun:at])
            begun = at + 1
    found = [_DDL_FIELD.match(each) for each in (*fields, schema[begun:])]
    return tuple(each[1].strip("`") for each in found if each) if all(found) else None


def selected(known: Sequence[str], columns: Iterable[object]) -> tuple[str, ...] | None:
    """What a selection of columns has; None if that isn't known."""
    names: list[str] = []
    for each in columns:
        if not isinstance(each, str):
            return None
        text = each.strip()
        if text == "*":
            names += known
        elif text in known:
            names.append(text)
        elif _NAME.fullmatch(text):
            names.append(text.strip("`"))
        elif aliased := alias(text):
            names.append(aliased)
        else:
            return None
    return tuple(names)


def alias(text: str) -> str | None:
    """What an expression is called by the `AS` at its end; None if it has none."""
    found = _ALIASED.fullmatch(text)
    return None if found is None else found[1].strip("`")


def check_text(what: str, text: str, known: Collection[str], where: str) -> None:
    """Refuses an expression with a name that is nearly a column's, and no column's.

    Args:
        what: how messages call the expression, as "where".
        where: whose columns these are, as "stream 'orders'".

    Raises:
        ProgramError: it has one. Says which column may be meant, which ones there are, and where that is written.
    """
    for name in () if text in known else _names(text):
        check_name(f"{what}({text!r})", name, known, where)


def check_name(what: str, name: str, known: Collection[str], where: str) -> None:
    """Refuses a name that is nearly a column's, and no column's. Args and errors as of `check_text`."""
    by_lower = {each.lower(): each for each in known}
    if name.startswith("_") or name.lower() in by_lower:
        return
    if alike := get_close_matches(name.lower(), by_lower):
        meant = " or ".join(repr(by_lower[each]) for each in alike)
        with located(Written()):
            raise ProgramError(
                f"{where}: {what}: there is no column {name!r}; did you mean {meant}? There are {', '.join(known)}"
            )


def _names(text: str) -> Iterable[str]:
    """Names in an expression that have to be columns."""
    tokens = [each for each in _TOKEN.findall(text) if not each.startswith(("--", "/*"))]
    words = ["", *(each.upper() for each in tokens), ""]
    if not _NOT_READ.isdisjoint(words):
        return
    for before, word, after, token in zip(words, words[1:], words[2:], tokens, strict=False):
        if word == "AS" and after in ("(", "ARRAY", "MAP", "STRUCT"):
            return  # names of several columns, or a type that has names of its own
        if not _NAME.fullmatch(token) or word in _WORDS:
            continue
        if before in (".", ":", "::", "AS", "COLLATE") or after in ("(", "=>", "FROM", ":") or after[:1] in ("'", '"'):
            continue  # of a struct, a type, an alias, a function, a parameter
        if before and before not in _WORDS and (before == ")" or before[0] in "`'\"_" or before[0].isalnum()):
            continue  # an alias without AS
        yield token.strip("`")
