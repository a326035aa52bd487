"""Whether brokers can be reached from here: where they were said to be, and where they say they are.

A broker tells its clients under which address they find it (`advertised.listeners`), and they go there, whatever
address they came by. So that has to be tried from here: by a connection of its own, with TLS and login, as `Admin`
goes to whatever broker answers.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.cli.client.errors import explain
from kohort.cli.diagnosis.finding import Finding, Level
from kohort.client.connection import Connection
from kohort.client.errors import AuthenticationError, ClientError
from kohort.client.time_limit import time_limit
from kohort.client.tls import tls_context
from kohort.client.types import Broker
from kohort.extras import are_installed
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from kohort.client.addresses import Address
    from kohort.client.config import ClientConfig

_Cluster = partial(Finding, "cluster")

_PROBE_MS: Final = 5_000
_DAYS: Final = 30
"""A certificate that ends sooner is told of."""
_REFUSED: Final = "is it running, and does it listen on this port?"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found at an address.

    Attributes:
        problem: why nobody can be spoken to there; None if somebody can.
        refused: whether the broker was reached, and refuses the client, or the client its certificate.
        cluster_id: of the cluster that is there.
        brokers: where its brokers say they are.
    """

    problem: str | None = None
    refused: bool = False
    cluster_id: str | None = None
    brokers: tuple[Broker, ...] = ()


async def ask(address: Address, config: ClientConfig) -> Answer:
    """Connects to an address, once, and asks who is there."""
    patience = min(_PROBE_MS, config.socket_connection_setup_timeout_ms)
    once = replace(config, socket_connection_setup_timeout_ms=patience, request_timeout_ms=_PROBE_MS, on_no_broker=None)
    try:
        connection = await Connection.open(Broker(-1, *address), once)
        try:
            answer = await connection.ask(MetadataRequest(topics=[]), MetadataResponse)
        finally:
            await connection.close()
    except (ClientError, KafkaError) as error:
        return Answer(problem=explain(error), refused=isinstance(error, AuthenticationError))
    brokers = (Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers)
    return Answer(cluster_id=answer.cluster_id, brokers=tuple(sorted(brokers)))


async def ask_all(addresses: Iterable[Address], config: ClientConfig) -> dict[Address, Answer]:
    wanted = [*dict.fromkeys(addresses)]
    return dict(zip(wanted, await asyncio.gather(*(ask(each, config) for each in wanted)), strict=True))


def bootstrap_findings(answers: Mapping[Address, Answer], *, named: bool) -> Iterator[Finding]:
    """What is to be said of the addresses that the client was given.

    Args:
        named: whether somebody has named the cluster; else that nobody is there is no fault.
    """
    reached = [address for address, answer in answers.items() if answer.problem is None]
    for answer in answers.values():
        if answer.problem is None:
            continue
        if answer.refused:
            why = "The broker is there, and one of both refuses the other."
            remedy = (
                "compare security.protocol, sasl.* and ssl.* with the listener's; --config FILE or a profile has them"
            )
            yield _Cluster(Level.WRONG, answer.problem, why, remedy)
        elif reached:
            why = (
                "Clients try one address after the other: this one costs them time, and is no help if the others fail."
            )
            yield _Cluster(Level.WARNING, answer.problem, why, "name brokers that are there")
        elif named:
            why = "No other address answers either, so nothing else of the cluster can be looked at."
            yield _Cluster(Level.WRONG, answer.problem, why, f"{_REFUSED} Firewalls and VPNs stand between, too")
        else:
            remedy = "kohort serve --ephemeral starts a broker here; --bootstrap-server names another"
            yield _Cluster(Level.NOTE, f"no cluster was named, and none is here: {answer.problem}", "", remedy)
    if len({answers[each].cluster_id for each in reached}) > 1:
        found = ", ".join(f"{_shown(each)} is of {answers[each].cluster_id}" for each in reached)
        why = "Clients take whichever answers first, and so see now one cluster, now another."
        yield _Cluster(
            Level.WRONG, f"the addresses are of different clusters: {found}", why, "name brokers of one cluster"
        )


def advertised_findings(
    home: str | None, brokers: Sequence[Broker], answers: Mapping[Address, Answer], asked: Sequence[Address]
) -> Iterator[Finding]:
    """What is to be said of the addresses that brokers give their clients.

    Args:
        home: the cluster's id.
        answers: what was found where they say they are.
        asked: where the client was told to look for the cluster.
    """
    why = (
        "A client asks any broker where the others are, and then goes there: it finds the cluster, and hangs or fails "
        "afterwards."
    )
    for broker in brokers:
        at = broker.host, broker.port
        answer = answers[at]
        local = _is_local(broker.host) and not all(_is_local(host) for host, _ in asked)
        remedy = f"set advertised.listeners of broker {broker.node_id} to an address that clients reach"
        if local:
            remedy += f": {broker.host} is whatever machine the client runs on"
        elif (broker.host, broker.port) not in asked:
            remedy += f"; or have {broker.host} resolve, and port {broker.port} be open, from here"
        if answer.problem is not None:
            what = f"broker {broker.node_id} tells clients to come to {_shown(at)}, and can't be reached there"
            yield _Cluster(Level.WRONG, f"{what}: {answer.problem}", why, remedy)
        elif answer.cluster_id != home:
            what = f"broker {broker.node_id} tells clients to come to {_shown(at)}, and another cluster is there"
            yield _Cluster(Level.WRONG, f"{what}: {answer.cluster_id}, not {home}", why, remedy)
        else:
            yield _Cluster(Level.FINE, f"broker {broker.node_id} can be reached at {_shown(at)}, where it says it is")


async def certificate_findings(addresses: Iterable[Address], config: ClientConfig, now: datetime) -> list[Finding]:
    """Certificates that end soon: the brokers', and the client's own."""
    if not config.uses_tls:
        return []
    found: list[Finding] = []
    for address in dict.fromkeys(addresses):
        if (end := await _certificate_end(address, config)) is not None:
            found += _ending(f"the certificate of {_shown(address)}", end, now)
    if config.ssl_certfile is not None and are_installed(["cryptography"]):
        from cryptography import x509

        try:
            own = x509.load_pem_x509_certificate(Path(config.ssl_certfile).read_bytes())
        except (OSError, ValueError):
            return found  # connecting has said so
        found += _ending(f"the client's own certificate, {config.ssl_certfile},", own.not_valid_after_utc, now)
    return found


async def _certificate_end(address: Address, config: ClientConfig) -> datetime | None:
    host, port = address
    try:
        async with time_limit(_PROBE_MS / 1000):
            _, writer = await asyncio.open_connection(host, port, ssl=tls_context(config), server_hostname=host)
    except (OSError, TimeoutError, UnicodeError):
        return None  # connecting has said so
    certificate = writer.get_extra_info("peercert") or {}
    writer.transport.abort()
    text = certificate.get("notAfter")
    if text is None:
        return None
    import ssl

    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)


def _ending(what: str, end: datetime, now: datetime) -> Iterator[Finding]:
    days = (end - now).days
    if days >= _DAYS:
        yield _Cluster(Level.FINE, f"{what} counts until {end:%Y-%m-%d}")
    elif end <= now:
        yield _Cluster(Level.WRONG, f"{what} has ended on {end:%Y-%m-%d}", "Nobody connects with it.", "renew it")
    else:
        left = "today" if days == 0 else "in a day" if days == 1 else f"in {days} days"
        why = "From then on nobody connects, and connections that are open go on until they break."
        yield _Cluster(Level.WARNING, f"{what} ends {left}, on {end:%Y-%m-%d}", why, "renew it before")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
