"""Principals of client certificates: the subject's distinguished name, and rules that make shorter names of it.

The name is written as Java does (RFC 2253): `CN=alice,OU=apps,O=Example`, the most special part first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import re2

Subject = Sequence[Sequence[tuple[str, str]]]
"""As Python's `ssl` gives it: relative names, each of types and values; the most general one first."""

_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL: Final = re.compile(r'[,+"\\<>;]')

_RULE: Final = re.compile(
    r"\s*(?: (?P<default>DEFAULT)"
    r" | RULE: (?P<pattern> (?:\\.|[^\\/])* ) / (?P<to> (?:\\.|[^\\/])* ) / (?P<case>[LU]?) )"
    r"\s*(?: , | \Z )",
    re.VERBOSE,
)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d)", re.DOTALL)


def distinguished_name(subject: Subject) -> str:
    """The name of a certificate's subject, by RFC 2253."""
    return ",".join(
        "+".join(f"{_KEYWORDS.get(kind, kind)}={_escaped(value)}" for kind, value in relative)
        for relative in reversed(subject)
    )


def _escaped(value: str) -> str:
    out = _SPECIAL.sub(lambda special: f"\\{special[0]}", value)
    if out.endswith(" "):
        out = f"{out[:-1]}\\ "
    return f"\\{out}" if out.startswith((" ", "#")) else out


class RuleError(ValueError):
    """`ssl.principal.mapping.rules` is malformed; says where."""


class _Rule(NamedTuple):
    pattern: re2._Regexp | None
    replacement: str
    case: str


class PrincipalMapper:
    """Rules of `ssl.principal.mapping.rules`: the first one that matches a name as a whole makes a shorter one of it.

    `RULE:pattern/replacement/`, with L or U at the end for lower or upper case, and `DEFAULT` for the name as it is.
    Patterns are RE2's.

    Raises:
        RuleError: a rule is malformed.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._rules: list[_Rule] = []
        at = 0
        while at < len(rules.rstrip()):
            match = _RULE.match(rules, at)
            if match is None:
                raise RuleError(f"character {at}: RULE:pattern/replacement/[LU] or DEFAULT should come here")
            at = match.end()
            pattern = None
            if match["default"] is None:
                try:
                    pattern = re2.compile(match["pattern"])
                except re2.error as error:
                    raise RuleError(f"{match['pattern']!r} is no pattern: {error}") from None
            self._rules.append(_Rule(pattern, match["to"] or "", match["case"] or ""))

    def name(self, distinguished: str) -> str | None:
        """The name that the rules make; None if none of them matches: nobody may come in by that name."""
        for rule in self._rules:
            if rule.pattern is None:
                return distinguished
            match = rule.pattern.fullmatch(distinguished)
            if match is not None:
                name = _REFERENCE.sub(lambda part: part[1] or _group(match, int(part[2])), rule.replacement)  # noqa: B023
                return name.lower() if rule.case == "L" else name.upper() if rule.case == "U" else name
        return None


def _group(match: re2._Match, number: int) -> str:
    """A group's text; empty for one that isn't there or took no part."""
    groups = (match.group(0), *match.groups())
    return (groups[number] or "") if number < len(groups) else ""
