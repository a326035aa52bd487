"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both sides prove that they know the password.

The server keeps no password, but what a client's proof can be checked by. Names are taken as UTF-8, as Kafka does, and
not normalised first (SASLprep). A name that nobody has is answered as one that somebody has: with a salt of its own,
always the same, of the kind that most users have, and as many iterations; and a proof that is wrong in the end.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.security.sasl.exchange import AuthenticationFailedError

MAX_ITERATIONS: Final = 16_384
"""The most that Kafka takes."""

SALT_BYTES: Final = 26
"""Of delegation tokens."""


class ScramMechanism(enum.Enum):
    """The mechanisms, by their names; with Kafka's numbers, their hashes, and their fewest iterations."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def number(self) -> int:
        """Kafka's number of it."""
        return 1 if self is ScramMechanism.SHA_256 else 2

    @classmethod
    def numbered(cls, number: int) -> ScramMechanism | None:
        """The mechanism with a number of Kafka's; None if there is none."""
        return next((each for each in cls if each.number == number), None)

    @property
    def hash(self) -> str:
        """The name of its hash, as hashlib has it."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    @property
    def min_iterations(self) -> int:
        """The fewest iterations that Kafka takes."""
        return 4096


@dataclass(frozen=True, slots=True, repr=False)
class ScramCredential:
    """What a server knows of a user; it isn't enough to log in with."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class Shape(NamedTuple):
    """What the first answer shows of a credential: how it was made, if not whose it is.

    Attributes:
        salt_bytes: None for a text as Kafka's tools make it.
    """

    iterations: int
    salt_bytes: int | None = None


def shape_of(credential: ScramCredential) -> Shape:
    """The shape of a credential."""
    salt = credential.salt
    text = _TOOLS_SALT[0] <= len(salt) <= _TOOLS_SALT[1] and all(each in _DIGITS for each in salt)
    return Shape(credential.iterations, None if text else len(salt))


def salt_like(shape: Shape, seed: bytes) -> bytes:
    """A salt of a shape, always the same for a seed."""
    stream = hashlib.shake_256(seed)
    if shape.salt_bytes is not None:
        return stream.digest(shape.salt_bytes)
    number, digits = int.from_bytes(stream.digest(17), "big") >> 6, bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.insert(0, _DIGITS[digit])
    return bytes(digits)


_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_TOOLS_SALT: Final = (20, 26)
"""Kafka's tools write a number of 130 bits in base 36: rarely in fewer than 25 digits, and never in more than 26."""


class TokenCredential(NamedTuple):
    """What a server knows of a delegation token.

    Attributes:
        owner: the name that it stands for.
        expires_at: in ms since 1970.
    """

    credential: ScramCredential
    owner: str
    expires_at: int


def credential(mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a salted password (PBKDF2 of password and salt), which the client's tools compute."""
    name = mechanism.hash
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return ScramCredential(
        salt, hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name), iterations
    )


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What stands for a password from then on (PBKDF2); the more iterations, the longer each guess takes."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)


class ScramExchange:
    """An exchange with one client.

    Args:
        credentials: returns a user's credential, None if there is none.
        tokens: returns that of a delegation token by its id, None if there is none.
        nonce: returns a random text without commas.
        secret: of the server, never changing: makes the salts of names that nobody has.
        shape: returns that of most users' credentials, which those of nobody get, too.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: Callable[[str], ScramCredential | None],
        nonce: Callable[[], str],
        secret: bytes,
        tokens: Callable[[str], TokenCredential | None] = lambda token_id: None,
        shape: Callable[[], Shape] | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce
        self._secret = secret
        self._tokens = tokens
        self._shape = shape
        self._token: TokenCredential | None = None
        self._first = ""
        self._answer = ""
        self._header = ""
        self._who = ""
        self._known: ScramCredential | None = None
        self._credential: ScramCredential | None = None
        self.name: str | None = None
        self.by_token = False
        self.expires_at: int | None = None
        self.refused = ""

    def evaluate(self, token: bytes) -> bytes:
        """Takes the client's first message, then its last; see `Exchange.evaluate`."""
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise self._failed() from None
        if self.name is not None:
            raise self._failed()
        return (self._challenge(text) if self._credential is None else self._verify(text)).encode()

    def _challenge(self, text: str) -> str:
        """Answers `n,[a=authzid],n=name,r=nonce[,extensions]` with nonce, salt and iterations."""
        parts = text.split(",", 2)
        if len(parts) != 3 or parts[0] not in ("n", "y") or not (parts[1] == "" or parts[1].startswith("a=")):
            raise self._failed()
        self._header = f"{parts[0]},{parts[1]},"
        self._first = parts[2]
        fields = self._fields(self._first)
        if list(fields)[:2] != ["n", "r"] or not fields["r"]:
            raise self._failed()
        self._who = self._name(fields["n"])
        wanted = self._name(parts[1][2:])
        if wanted not in ("", self._who):
            raise AuthenticationFailedError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.by_token = fields.get("tokenauth", "").lower() == "true"
        if self.by_token:
            self._token = self._tokens(self._who)
            self._known = None if self._token is None else self._token.credential
        else:
            self._known = self._credentials(self._who)
        nobodys = self._nobodys()  # made in any case, so that it takes as long
        self._credential = nobodys if self._known is None else self._known
        salt = base64.b64encode(self._credential.salt).decode()
        self._answer = f"r={fields['r']}{self._nonce()},s={salt},i={self._credential.iterations}"
        return self._answer

    def _verify(self, text: str) -> str:
        """Answers `c=header,r=nonce,p=proof` with the server's signature."""
        assert self._credential is not None
        unsigned, comma, proof = text.rpartition(",p=")
        fields = self._fields(unsigned)
        if not comma or list(fields)[:2] != ["c", "r"]:
            raise self._failed()
        if self._bytes(fields["c"]) != self._header.encode() or fields["r"] != self._fields(self._answer)["r"]:
            raise self._failed()
        name = self._mechanism.hash
        signed = f"{self._first},{self._answer},{unsigned}".encode()
        signature = hmac.digest(self._credential.stored_key, signed, name)
        proved = self._bytes(proof)
        if len(proved) != len(signature):
            raise self._failed()
        client_key = bytes(a ^ b for a, b in zip(proved, signature, strict=True))
        right = hmac.compare_digest(hashlib.new(name, client_key).digest(), self._credential.stored_key)
        if not right or self._known is None:
            raise self._failed()
        self.name = self._who
        if self._token is not None:
            self.name, self.expires_at = self._token.owner, self._token.expires_at
        return f"v={base64.b64encode(hmac.digest(self._credential.server_key, signed, name)).decode()}"

    def _nobodys(self) -> ScramCredential:
        """What a user would have that there isn't; nobody can know a password for it."""
        of_tokens = Shape(self._mechanism.min_iterations, SALT_BYTES)
        shape = of_tokens if self.by_token or self._shape is None else self._shape()
        seed = hmac.digest(self._secret, f"{self._mechanism.value},{self.by_token},{self._who}".encode(), "sha512")
        key = bytes(hashlib.new(self._mechanism.hash).digest_size)
        return ScramCredential(salt_like(shape, seed), key, key, shape.iterations)

    def _fields(self, text: str) -> dict[str, str]:
        """The fields of a message such as `n=name,r=nonce`, in their order; each is there once."""
        fields: dict[str, str] = {}
        for part in text.split(","):
            name, equals, value = part.partition("=")
            # An "m" stands for an extension that must be understood; Kafka's own have longer names.
            if not equals or not name.isalpha() or name == "m" or name in fields:
                raise self._failed()
            fields[name] = value
        return fields

    def _name(self, escaped: str) -> str:
        """A name without its escapes: `=2C` for a comma, `=3D` for `=`."""
        name = escaped.replace("=2C", ",").replace("=3D", "\0")
        if "=" in name or "\0" in escaped:
            raise self._failed()
        return name.replace("\0", "=")

    def _bytes(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self._failed() from None

    def _failed(self) -> AuthenticationFailedError:
        """The same for whatever is wrong, as Kafka says it."""
        return AuthenticationFailedError(
            "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            f"{self._mechanism.value}"
        )
