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

_NAME: Final = re.compile(r"[^\W\d]\w*|`(?:[^`]|``)+`")
_PLAIN: Final = re.compile(
    rf"""\s*(?:(?P<name>{_NAME.pattern})|(?P<literal>'[^'\\]*'|\d+(?:\.\d+)?)|(?P<sign><=|>=|<>|!=|==|[=<>()+*/%,-]))"""
)
"""A token of a plain expression."""
_OPERATORS: Final = frozenset(("AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE"))
_CONSTANTS: Final = frozenset(("NULL", "TRUE", "FALSE"))
_FUNCTIONS: Final = frozenset(("LOCALTIMESTAMP", "SESSION_USER", "USER"))
"""Those that are called without parentheses, beside `CURRENT_…`."""
_ALIASED: Final = re.compile(rf"(.*\S)\s+AS\s+({_NAME.pattern})\s*", re.DOTALL | re.IGNORECASE)
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|\S""", re.DOTALL)
_DDL_FIELD: Final = re.compile(r"\s*([^\W\d]\w*|`[^`]+`)\s*(?::|\s)\s*\S")
_ALIKE: Final = 0.8
"""How alike names are of which one is taken for the other, misspelt: `min_amount` isn't `amount`."""


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
    tokens = [(each.group(), each.start()) for each in _QUOTED.finditer(schema)]
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
    """What an expression is called by the `AS` at its end; None if it has none, or a comment, which may have one."""
    found = None if _has_comment(text) else _ALIASED.fullmatch(text)
    return None if found is None else found[2].strip("`")


def check_text(what: str, text: str, known: Collection[str], where: str) -> None:
    """Refuses a plain expression with a name that is nearly a column's, and no column's.

    Plain are comparisons and sums of columns, numbers and texts, with `AND`, `OR` and the like, and `AS` at the end. A
    name in others may be anything: a function, a field, a type, a variable of a lambda.

    Args:
        what: how messages call the expression, as "where".
        where: whose columns these are, as "stream 'orders'".

    Raises:
        ProgramError: it has one. Says which column may be meant, which ones there are, and where that is written.
    """
    for name in () if text in known else _names(text):
        check_name(f"{what}({text!r})", name, known, where)


def check_reference(what: str, given: str, known: Collection[str], where: str) -> None:
    """Refuses a plain name, as `F.col` takes it, that is nearly a column's, and no column's.

    Others have dots before fields of structs, say. Args and errors as of `check_name`.
    """
    if _NAME.fullmatch(given):
        for name in _names(given):
            check_name(what, name, known, where)


def check_name(what: str, name: str, known: Collection[str], where: str, more: str = "") -> None:
    """Refuses a name that is nearly a column's, and no column's. Args and errors as of `check_text`.

    Args:
        what: how messages call what names it, as "group_by 'idd'".
        more: what there is to say beside that.
    """
    by_lower = {each.lower(): each for each in known}
    if name.startswith("_") or name.lower() in by_lower:
        return
    if alike := get_close_matches(name.lower(), by_lower, cutoff=_ALIKE):
        meant, there = " or ".join(repr(by_lower[each]) for each in alike), ", ".join(known)
        with located(Written()):
            raise ProgramError(
                f"{where}: {what}: there is no column {name!r}; did you mean {meant}? There are {there}{more}"
            )


def _names(text: str) -> Sequence[str]:
    """The names in a plain expression; none of another one."""
    if _has_comment(text):
        return ()
    if aliased := _ALIASED.fullmatch(text):
        text = aliased[1]
    names: list[str] = []
    at, ended = 0, False  # whether an operand has ended: what comes after it is an operator
    while found := _PLAIN.match(text, at):
        at = found.end()
        name, sign = found["name"], found["sign"]
        word = (name or "").upper()
        if word in _OPERATORS:
            ended = False
        elif sign is None:
            if ended or word in _FUNCTIONS or word.startswith("CURRENT_"):
                return ()  # an alias without AS, a unit of time, a word that isn't known here
            ended = True
            if name is not None and word not in _CONSTANTS:
                names.append(name.strip("`"))
        elif sign == "(" and ended:
            return ()  # a function
        else:
            ended = sign == ")"
    return () if text[at:].strip() else names


def _has_comment(text: str) -> bool:
    return "--" in text or "/*" in text
