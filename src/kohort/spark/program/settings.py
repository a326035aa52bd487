"""How an application runs: Kafka Streams' settings, by Kafka Streams' names."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kohort.client.addresses import parse_addresses
from kohort.client.config import ClientConfig, Servers, client_config
from kohort.client.errors import ConfigError
from kohort.client.streams.settings import GroupProtocol
from kohort.http_access import LOOPBACK, HttpAccess
from kohort.spark.errors import ProgramError
from kohort.spark.program.error_policies import ErrorPolicy, Fail
from kohort.spark.program.wrong_turns import of_spark

__all__ = ["AppSettings", "check_name"]

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_LONGEST_TOPIC: Final = 249  # Kafka's limit, which internal topics' names have to keep too


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The settings of an instance. Where nothing else is said, all instances of an application need the same ones.

    Attributes:
        application_id: the group's id; internal topics' names begin with it.
        client: how to reach the cluster.
        group_protocol: "streams"; or "classic", for brokers without streams groups: then one of the instances places
            the tasks; or "auto": a streams group where the brokers have them, and the group isn't a classic one with
            members.
        num_standby_replicas: how many copies of each task's state other instances keep; None leaves it to the group's
            configuration, which by default has none kept.
        max_warmup_replicas: how many tasks may restore at a time on instances that they shall move to; None leaves it
            to the group's configuration.
        acceptable_recovery_lag: how many records behind a copy may be for its task to move there; None as above.
        session_timeout_ms, heartbeat_interval_ms: after which time without a heartbeat an instance is taken for dead,
            and how often it sends one; None leaves it to the group's configuration.
        replication_factor: of internal topics; -1 for the brokers' default.
        state_dir: where stores are kept, in a folder named as the application. An instance's own.
        application_server: "HOST:PORT" where this instance answers queries, port 0 for a free one; ":PORT" for this
            machine alone; None for none. An instance's own.
        application_server_token_file: a file with the token that queries need ("Authorization: Bearer …"), the same
            for all instances; None for none. So a server on an address that others reach is protected.
        application_server_certfile, application_server_keyfile: PEM files of the server's certificate, for the host of
            `application_server`, and of its key (which may be in the former): it speaks HTTPS, and so do instances
            among each other.
        application_server_cafile: PEM file of the certificates that those of clients and of other instances must be
            signed by; with it, who asks needs a client certificate.
        client_tags: where this instance runs, so that standbys are spread: `{"zone": "eu-1a"}`. An instance's own.
        rack_id: the rack this instance runs in. An instance's own.
        group_instance_id: makes this instance a static member, which may restart without its tasks moving. Its own.
        on_error: what becomes of records that can't be decoded, where a source says nothing of its own.
        target_epoch_ms: how long an epoch shall take where there is a backlog; its size adapts to that.
        max_epoch_records, max_epoch_bytes: the most an epoch takes in.
        poll_ms: how often idle inputs are looked at.
        transaction_timeout_ms: after how long the brokers abort a transaction that an instance has left open. It must
            be longer than an epoch's writes take.
        state_cleanup_delay_ms: after how long the state of a task that this instance hasn't got any more is deleted.
        repartition_purge_interval_ms: how often records that were consumed are removed from repartition topics.
        windowstore_changelog_additional_retention_ms: how much longer than a window is retained its changelog is.
        journal: a file to which everything that happens is appended, as JSON lines; None for none.

    Raises:
        ProgramError: a setting that can't be.
    """

    application_id: str
    client: ClientConfig
    group_protocol: GroupProtocol = "streams"
    num_standby_replicas: int | None = None
    max_warmup_replicas: int | None = None
    acceptable_recovery_lag: int | None = None
    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None
    replication_factor: int = -1
    state_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "kohort-streams")
    application_server: str | None = None
    application_server_token_file: Path | None = None
    application_server_certfile: Path | None = None
    application_server_keyfile: Path | None = None
    application_server_cafile: Path | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    rack_id: str | None = None
    group_instance_id: str | None = None
    on_error: ErrorPolicy = field(default_factory=Fail)
    target_epoch_ms: int = 5_000
    max_epoch_records: int = 400_000
    max_epoch_bytes: int = 256 * 1024 * 1024
    poll_ms: int = 50
    transaction_timeout_ms: int = 60_000
    state_cleanup_delay_ms: int = 600_000
    repartition_purge_interval_ms: int = 30_000
    windowstore_changelog_additional_retention_ms: int = 86_400_000
    journal: Path | None = None

    def __post_init__(self) -> None:
        """Checks and normalises."""
        check_name("application_id", self.application_id)
        if self.group_protocol not in ("streams", "classic", "auto"):
            raise ProgramError(f'group_protocol={self.group_protocol!r} must be "streams", "classic" or "auto"')
        self._path("state_dir")
        self._path("journal")
        for name in ("token_file", "certfile", "keyfile", "cafile"):
            self._path(f"application_server_{name}")
        tags = self.client_tags
        if not isinstance(tags, Mapping) or not all(isinstance(each, str) for pair in tags.items() for each in pair):
            raise ProgramError(f'client_tags={tags!r}: names and values, as {{"zone": "eu-1a"}}')
        object.__setattr__(self, "client_tags", dict(tags))
        for name in ("application_server", "rack_id", "group_instance_id"):
            if not isinstance(getattr(self, name), str | None):
                raise ProgramError(f"{name}={getattr(self, name)!r} must be a text")
        for name in ("num_standby_replicas", "max_warmup_replicas", "acceptable_recovery_lag"):
            self._at_least(name, 0)
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "target_epoch_ms", "max_epoch_records",
                     "max_epoch_bytes", "poll_ms", "transaction_timeout_ms",
                     "state_cleanup_delay_ms", "repartition_purge_interval_ms"):  # fmt: skip
            self._at_least(name, 1)
        self._at_least("windowstore_changelog_additional_retention_ms", 0)
        if self.replication_factor != -1:
            self._at_least("replication_factor", 1, "; or -1, which is the brokers' default")
        if not isinstance(self.on_error, ErrorPolicy):
            raise ProgramError(f'on_error={self.on_error!r}: give Fail(), Drop() or DeadLetter("a topic")')
        _ = self.endpoint
        if self.client.ssl_context is not None:
            raise ProgramError(
                "bootstrap_servers: an ssl_context can't be sent to executors: name files that are on each of their "
                "machines, as ssl_cafile"
            )

    @classmethod
    def of(cls, application_id: str, servers: Servers, **settings: object) -> AppSettings:
        """Settings for servers that are addresses or a configuration; those that are None stay as they are by default.

        Raises:
            ProgramError: a setting that can't be, or isn't one.
        """
        known = cls.__dataclass_fields__.keys() - {"application_id", "client"}
        if strange := sorted(settings.keys() - known):
            names = ", ".join(sorted(known))
            raise ProgramError(f"StreamsApp has no setting {strange[0]!r}; settings are {names}")
        try:
            client = client_config(servers)
        except TypeError:
            raise ProgramError(f'bootstrap_servers={servers!r}: "HOST:PORT,…", or a ClientConfig') from None
        except ConfigError as error:
            raise ProgramError(f"bootstrap_servers: {error}") from None
        given = {name: value for name, value in settings.items() if value is not None}
        return cls(application_id=application_id, client=client, **given)  # type: ignore[arg-type]

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """The host and port of `application_server`; port 0 is a free one, which is known once it is listened on."""
        if self.application_server is None:
            return None
        with contextlib.suppress(ConfigError, ValueError):
            given = self.application_server
            ((host, port),) = parse_addresses(f"{LOOPBACK}{given}" if given.startswith(":") else given, least_port=0)
            if given.endswith(f":{port}"):  # else none is given: brokers have a default
                return host, port
        raise ProgramError(
            f"application_server={self.application_server!r}: HOST:PORT, where other instances reach this one"
        )

    def http_access(self) -> HttpAccess:
        """Who may ask the server of this instance: reads its files.

        Raises:
            ProgramError: one of them isn't what it should be.
        """
        try:
            return HttpAccess.load(
                "application_server_",
                token_file=self.application_server_token_file,
                certfile=self.application_server_certfile,
                keyfile=self.application_server_keyfile,
                cafile=self.application_server_cafile,
            )
        except ValueError as error:
            raise ProgramError(str(error)) from None

    def _path(self, name: str) -> None:
        value = getattr(self, name)
        try:
            object.__setattr__(self, name, None if value is None else Path(value))
        except TypeError:
            raise ProgramError(f"{name}={value!r} must be a path") from None

    def _at_least(self, name: str, least: int, otherwise: str = "") -> None:
        value = getattr(self, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ProgramError(f"{name}={value!r} must be a whole number, {least} or more{otherwise}")


def check_name(what: str, name: object) -> str:
    """A name that may be a part of a topic's, a folder's and an address's.

    Raises:
        ProgramError: it may not.
    """
    if of_spark(name):
        raise ProgramError(
            f"{what} is the name of a topic, which Kohort reads itself, not something of Spark's: {name!r}"
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        raise ProgramError(f"{what}={name!r}: a name is made of letters, digits, '.', '_' and '-', as a topic's")
    if len(name) > _LONGEST_TOPIC:
        raise ProgramError(
            f"{what} has {len(name)} characters; {_LONGEST_TOPIC} is the most that a topic's name may have"
        )
    return name
