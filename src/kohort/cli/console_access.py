"""Who may use the console, from the options of `kohort console`."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from kohort.cli.terminal import err, fail
from kohort.client.config import ClientConfig
from kohort.console.audit import AuditLog
from kohort.console.desk import Desk
from kohort.console.login import Login, ScramLogin, TokenLogin
from kohort.console.server import Policy
from kohort.http_access import HttpAccess, check_token, is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleAccess:
    """What the options say.

    Attributes:
        token: that is asked for; None if none is.
        by_user: whether a user of the cluster logs in.
        tls: of the port; None for plain HTTP.
        write: whether anything may be changed.
        audit: is told of changes.
        uses_sasl: whether the console's user has rights of its own in the cluster.
    """

    token: bytes | None
    by_user: bool
    tls: ssl.SSLContext | None
    write: bool
    audit: AuditLog
    uses_sasl: bool

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    def policy(self, config: ClientConfig, desk: Desk, *, every: float, timeout_ms: int) -> Policy:
        """What the server is told, in whose event loop this is called."""
        login: Login | None = None
        if self.by_user:
            login = ScramLogin(config, every=every, timeout_ms=timeout_ms, decoder=desk.records.decoder)
        elif self.token is not None:
            login = TokenLogin(self.token, desk)
        return Policy(login, self.write, self.audit, self.tls)

    def warning(self, host: str) -> str:
        """What should be thought of where it listens; "" if nothing."""
        asks = self.by_user or self.token is not None
        if is_loopback(host):
            if self.write and self.uses_sasl and not asks:
                return (
                    "any account of this machine may change what this user may: nobody is asked who they are, without "
                    "--login scram or --token-file"
                )
            return ""
        if not asks:
            what = "read and change what this user may" if self.write else "read what this user may"
            return f"others than this machine may reach it, and {what}: nobody is asked who they are"
        if self.tls is None:
            what = "passwords" if self.by_user else "the token"
            return f"{what} and all pages go over the network as they are, without a proxy that speaks TLS: --certfile"
        return ""


def console_access(
    *,
    host: str,
    token_file: str | None,
    token: str | None,
    login: str | None,
    no_login: bool,
    certfile: str | None,
    keyfile: str | None,
    write: bool,
    audit_log: str | None,
    uses_sasl: bool,
) -> ConsoleAccess:
    """What the options say; the command ends if they contradict each other, or leave open who may look."""
    try:
        access = HttpAccess.load("--", token_file=token_file, certfile=certfile, keyfile=keyfile)
        given = access.token
        if given is None and token:
            given = token.strip().encode(errors="replace")
            check_token("KOHORT_CONSOLE_TOKEN", given)
    except ValueError as error:
        fail(str(error))
    if login not in (None, "scram"):
        fail(f"--login {login}: there is scram, with a user of the cluster; for a token, give --token-file")
    if login is not None and given is not None:
        fail("--login scram and a token exclude each other: either everybody has a name, or all have the token")
    if no_login and (login is not None or given is not None):
        fail("--no-login lets everybody in; leave it out, or --login and the token")
    if login is not None and not uses_sasl:
        fail(
            "--login scram: the cluster must ask for names and passwords: name a listener that does, with "
            "security.protocol=SASL_SSL in the --config file"
        )
    if login is None and given is None and not no_login and not is_loopback(host):
        fail(
            f"--host {host}: others than this machine may reach it, so who may look? --token-file FILE asks for a token"
            " (openssl rand -hex 32 makes one), --login scram for a user of the cluster, --no-login for nothing"
        )
    try:
        audit = AuditLog(None if audit_log is None else Path(audit_log))
    except OSError as error:
        fail(f"--audit-log {audit_log}: {error.strerror or error}", 1)
    return ConsoleAccess(
        token=given, by_user=login is not None, tls=access.server, write=write, audit=audit, uses_sasl=uses_sasl
    )


def stores_access(
    stores: bool, token_file: str | None, cafile: str | None, certfile: str | None, keyfile: str | None
) -> HttpAccess | None:
    """With what instances are asked about their stores; None if none is. The command ends if that makes no sense."""
    if not stores:
        if any((token_file, cafile, certfile, keyfile)):
            fail("--stores-token-file, --stores-cafile, --stores-certfile and --stores-keyfile want --stores")
        return None
    try:
        access = HttpAccess.to_ask(
            "--stores-", token_file=token_file, cafile=cafile, certfile=certfile, keyfile=keyfile
        )
    except ValueError as error:
        fail(str(error))
    if access.token is not None and access.client is None:
        err.print(
            "the token of --stores-token-file goes as it is to whatever address a member of a group tells: "
            "--stores-cafile asks by HTTPS, and only instances with a certificate of those",
            markup=False,
            soft_wrap=True,
        )
    return access
