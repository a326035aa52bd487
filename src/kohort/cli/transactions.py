"""`kohort transactions`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.client import completion
from kohort.cli.client.admin import with_admin
from kohort.cli.client.arguments import parse_duration
from kohort.cli.client.listing_options import LimitOption, PatternOption, first, name_filter
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import err, fail, out, print_json

if TYPE_CHECKING:
    from kohort.client.administration.transactions import TransactionDescription

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead",
)  # fmt: skip


@app.command("list")
def list_transactions(
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only in this state, such as Ongoing. Repeatable.",
            autocompletion=completion.words(*STATES),
        ),
    ] = None,
    longer_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only those that have been open for longer: 90s, 15m, 1h.")
    ] = None,
    pattern: PatternOption = None,
    limit: LimitOption = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List transactional ids: their producers, and whether a transaction is open.

    kohort transactions list --state Ongoing --longer-than 15m
    """
    wanted = [_state(each) for each in states or ()]
    matches = name_filter(pattern)
    running_ms = None if longer_than is None else parse_duration(longer_than, "--longer-than")
    listed = with_admin(
        bootstrap_server,
        config,
        timeout,
        lambda admin: admin.transactions.list(states=wanted, running_longer_than_ms=running_ms),
    )
    found = first((each for each in listed if matches(each.transactional_id)), limit)
    if as_json:
        print_json([each._asdict() for each in found])
        return
    if not found:
        err.print("no such transactions" if wanted or pattern or running_ms is not None else "no transactional ids yet")
        return
    from kohort.cli.client.tables import table

    rows = [(each.transactional_id, each.state, str(each.producer_id), each.coordinator) for each in found]
    out.print(table(("Transactional id", "State", ">Producer", ">Coordinator"), rows))


@app.command()
def describe(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID…", help="Transactional ids.", autocompletion=completion.transactional_ids),
    ],
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show transactional ids: the state, the producer, how long a transaction has been open, and its partitions.

    kohort transactions describe payments-1
    """
    found = with_admin(bootstrap_server, config, timeout, lambda admin: admin.transactions.describe(*ids))
    if as_json:
        print_json([_as_json(found[each]) for each in dict.fromkeys(ids)])
        return
    from kohort.cli.client.tables import table
    from kohort.number_ranges import partitions_text

    now_ms = time.time() * 1000
    rows = [
        (
            each.transactional_id,
            each.state,
            f"{each.producer_id}, epoch {each.producer_epoch}",
            str(each.coordinator),
            f"{each.timeout_ms / 1000:g} s",
            None if each.start_ms is None else _open_for(each.start_ms, now_ms),
            partitions_text(each.partitions) or None,
        )
        for each in (found[name] for name in dict.fromkeys(ids))
    ]
    out.print(
        table(("Transactional id", "State", "Producer", ">Coordinator", ">Timeout", "Open since", "Partitions"), rows)
    )


def _state(text: str) -> str:
    """A state as brokers write it."""
    known = {each.lower(): each for each in STATES}
    if text.lower() not in known:
        fail(f"--state {text}: one of {', '.join(STATES)} is wanted")
    return known[text.lower()]


def _open_for(start_ms: int, now_ms: float) -> str:
    return f"{datetime.fromtimestamp(start_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC, {(now_ms - start_ms) / 1000:,.0f} s"


def _as_json(each: TransactionDescription) -> dict[str, Any]:
    from kohort.client.types import by_topic

    return {
        "transactional_id": each.transactional_id,
        "state": each.state,
        "coordinator": each.coordinator,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "timeout_ms": each.timeout_ms,
        "start_ms": each.start_ms,
        "partitions": by_topic(each.partitions),
    }
