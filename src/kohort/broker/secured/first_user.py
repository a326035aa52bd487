"""The first user of a secured broker: a password of its own, and credentials in the metadata log."""

from __future__ import annotations

import errno
import hmac
import re
import secrets
from pathlib import Path
from typing import Final

from kohort.broker.config.errors import ConfigError
from kohort.broker.scram_users import ScramUsers, UserChange
from kohort.broker.secured.files import SECRET, read, write
from kohort.protocol.errors import KafkaError
from kohort.security.sasl.scram import SALT_BYTES, ScramCredential, ScramMechanism, credential, salted_password

NAME: Final = "admin"
ITERATIONS: Final = 8192

_PASSWORD: Final = re.compile(r"[!#-&(-\[\]-~]{8,255}")
"""ASCII without spaces, quotes and backslashes: it is the same in Java's files, in librdkafka's and in Python."""

_MECHANISMS: Final = (ScramMechanism.SHA_256, ScramMechanism.SHA_512)
"""The last one tells whether a crash has left some out."""


class FirstUser:
    """The first user.

    Args:
        file: has the password on its first line; made if it isn't there.

    Attributes:
        made: whether the password is a new one.

    Raises:
        ConfigError: the file has no password that can be used.
        OSError: it can't be read or written.
    """

    name = NAME

    def __init__(self, file: Path) -> None:
        self._file = file
        text = read(file)
        self.made = text is None
        if text is None:
            text = secrets.token_urlsafe(24)
            write(file, f"{text}\n", SECRET)
        self.password = text.split("\n", 1)[0].rstrip("\r")
        if not _PASSWORD.fullmatch(self.password):
            raise ConfigError(
                f"{file}: its first line must be a password of at least 8 ASCII characters, without spaces, quotes and "
                "backslashes; or move it away, and another one is made"
            )

    def let_in(self, users: ScramUsers) -> str | None:
        """Gives the user its credentials, if it has none or the password is a new one.

        Returns:
            a warning, if it has other ones, which stay.

        Raises:
            OSError: the metadata log can't be written.
        """
        known = users.find(_MECHANISMS[-1], self.name)
        if known is not None and not self.made:
            if self._fits(known):
                return None
            return (
                f"{self.name} has another password than {self._file} says, so the files of settings there let nobody "
                f"in: write the password there; or move the file away, and {self.name} gets a new one at the next start"
            )
        try:
            for mechanism in _MECHANISMS:
                salt = secrets.token_bytes(SALT_BYTES)
                salted = salted_password(mechanism, self.password, salt, ITERATIONS)
                made = credential(mechanism, salted, salt, ITERATIONS)
                users.alter([UserChange(self.name, mechanism.number, made)])
        except KafkaError as error:
            raise OSError(errno.EIO, f"the first user can't be written to the metadata log: {error}") from error
        self.made = False
        return None

    def _fits(self, known: ScramCredential) -> bool:
        mechanism = _MECHANISMS[-1]
        salted = salted_password(mechanism, self.password, known.salt, known.iterations)
        made = credential(mechanism, salted, known.salt, known.iterations)
        return hmac.compare_digest(made.stored_key, known.stored_key)
