"""A broker that is secured by one directory."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path

from kohort.broker.config import Settings
from kohort.broker.scram_users import ScramUsers
from kohort.broker.secured import broker_settings
from kohort.broker.secured.authority import CertificateFiles
from kohort.broker.secured.client_settings import ClientSettings, shown
from kohort.broker.secured.files import SECRET, locked, make_directory, others_may_read, write
from kohort.broker.secured.first_user import NAME, FirstUser
from kohort.extras import require

log = logging.getLogger("kohort.secure")


class Secured:
    """A directory that secures a broker.

    Args:
        directory: made if it isn't there.

    Attributes:
        certificates: the files of the authority and the certificate.
        password, java, librdkafka: other files: the first user's password, and settings of clients.

    Raises:
        MissingExtraError: cryptography isn't installed.
    """

    def __init__(self, directory: Path) -> None:
        require("security", "a secured broker", ["cryptography"])
        self.directory = directory.absolute()
        self.certificates = CertificateFiles(self.directory)
        self.password = self.directory / "password"
        self.java = self.directory / "client.properties"
        self.librdkafka = self.directory / "librdkafka.conf"
        self._user: FirstUser | None = None

    @property
    def data(self) -> Path:
        """Where the broker keeps its data, if nothing else is said."""
        return self.directory / "data"

    def settings(self, settings: Settings) -> Settings:
        """Returns the broker's settings with what secures it.

        Raises:
            ConfigError: something that is configured contradicts it.
        """
        return broker_settings.secured(settings, self.directory, self.certificates.server, NAME)

    def make(self, settings: Settings) -> None:
        """Makes the files that aren't there, and the certificate anew if it must be; says so in the log.

        Raises:
            ConfigError: a file can't be used as it is.
            OSError: one can't be read or written.
        """
        make_directory(self.directory)
        with locked(self.directory):
            for note in self.certificates.make(broker_settings.hosts(settings), _now()):
                log.info("certificates note=%s", note)
            if self._user is None:
                self._user = FirstUser(self.password)
        for secret in (self.certificates.ca_key, self.certificates.server, self.password, self.java, self.librdkafka):
            if secret.exists() and others_may_read(secret):
                log.warning("other users of this machine may read %s: chmod 600 %s", secret, secret)

    def let_in(self, users: ScramUsers) -> None:
        """Gives the first user its credentials; before any client connects.

        Raises:
            OSError: the metadata log can't be written.
        """
        assert self._user is not None
        if warning := self._user.let_in(users):
            log.warning("%s", warning)

    def client_settings(self, servers: str) -> ClientSettings:
        """Returns the settings of clients of the first user."""
        assert self._user is not None
        return ClientSettings(servers, self.certificates.ca, self._user.name, self._user.password)

    def write_client_settings(self, servers: str) -> None:
        """Writes the files of settings for clients.

        Raises:
            OSError: they can't be written.
        """
        settings = self.client_settings(servers)
        with locked(self.directory):
            write(self.java, settings.java_file(), SECRET)
            write(self.librdkafka, settings.librdkafka_file(), SECRET)

    def shown(self, servers: str, *, with_password: bool) -> str:
        """The settings as they are pasted."""
        settings = self.client_settings(servers)
        if not with_password:
            settings = settings._replace(password=f"(in {self.password})")
        return shown(settings, self.directory, java=self.java, librdkafka=self.librdkafka, password=self.password)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
