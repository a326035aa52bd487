"""Kafka's `sasl.jaas.config`: a login module with its options.

org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="other";
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

USER: Final = "user_"
"""Options of PLAIN that have a user's password are named by this, and the user's name."""

FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKEN: Final = re.compile(
    r"""
    (?P<space> [\s]+ | //[^\n]* | /\*.*?\*/ )
    | "(?P<double> (?: [^"\\\n] | \\. )* )"
    | '(?P<single> (?: [^'\\\n] | \\. )* )'
    | (?P<mark> [=;] )
    | (?P<word> [^\s"'=;/]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class JaasError(ValueError):
    """The text isn't a login module's configuration; says where. It never shows an option's value."""


@dataclass(frozen=True, slots=True, repr=False)
class LoginModule:
    """A login module.

    Attributes:
        name: its Java class.
        options: by name; secrets among them.
    """

    name: str
    flag: str
    options: dict[str, str]

    def passwords(self) -> dict[str, str]:
        """The users of PLAIN with their passwords."""
        return {name.removeprefix(USER): value for name, value in self.options.items() if name.startswith(USER)}


def parse_jaas(text: str) -> LoginModule:
    """Parses the one login module in a text.

    Raises:
        JaasError: there isn't exactly one, or it is malformed.
    """
    tokens = _Tokens(text)
    name = tokens.word("the class of a login module")
    flag = tokens.word("required, requisite, sufficient or optional")
    if flag.lower() not in FLAGS:
        raise tokens.error("required, requisite, sufficient or optional")
    options: dict[str, str] = {}
    while not tokens.take(";"):
        option = tokens.word("an option, or ;")
        if not tokens.take("="):
            raise tokens.error("= after an option's name")  # which may be half of a password
        options[option] = tokens.word("an option's value")
    if not tokens.ended:
        raise tokens.error("the end, as there may be one login module")
    return LoginModule(name, flag.lower(), options)


class _Tokens:
    """The words and marks of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next: tuple[str, bool] | None = None  # and whether it is a mark
        self._advance()

    @property
    def ended(self) -> bool:
        return self._next is None

    def take(self, mark: str) -> bool:
        """Goes past a mark, if it comes next."""
        if self._next != (mark, True):
            return False
        self._advance()
        return True

    def word(self, wanted: str) -> str:
        if self._next is None or self._next[1]:
            raise self.error(wanted)
        word = self._next[0]
        self._advance()
        return word

    def error(self, wanted: str) -> JaasError:
        return JaasError(f"{wanted} should come before character {self._at}")

    def _advance(self) -> None:
        while self._at < len(self._text):
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                raise JaasError(f"character {self._at}: a quote isn't closed, or a comment")
            self._at = match.end()
            if match["space"] is None:
                quoted = match["double"] if match["double"] is not None else match["single"]
                word = match["word"] if quoted is None else _unescaped(quoted)
                self._next = (match["mark"], True) if match["mark"] else (word or "", False)
                return
        self._next = None


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)

    return _ESCAPE.sub(plain, text)
