"""`kohort wire list`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kohort.cli.terminal import out, print_json


def list_messages(
    data: Annotated[
        bool, typer.Option("--data", help="List embedded protocols, coordinator and control records instead of APIs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the APIs: key, name, versions, and the first flexible version."""
    from kohort.protocol.catalogue import all_messages
    from kohort.protocol.message import Kind
    from kohort.protocol.messages import apis
    from kohort.protocol.schema import LATEST

    def row(name: str, key: int, versions: range, flexible: int) -> dict[str, Any]:
        since = flexible if flexible <= LATEST else None
        return {"key": key, "name": name, "versions": [versions[0], versions[-1]], "flexible": since}

    if data:
        specs = [message.__message__ for message in all_messages().values()]
        plain = [spec for spec in specs if spec.kind not in (Kind.REQUEST, Kind.RESPONSE)]
        rows = [row(spec.name, spec.key, spec.versions, spec.flexible_since) for spec in plain]
    else:
        rows = [row(entry.name, entry.key, entry.versions, entry.flexible_since) for entry in apis()]
    if as_json:
        print_json(rows)
        return

    from rich import box

    from kohort.cli.client.fitting import FittingTable

    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Record type" if data else "Key", justify="right", style="dim", overflow="fold")
    table.add_column("Message" if data else "API", style="bold", overflow="fold")
    table.add_column("Versions", overflow="fold")
    table.add_column("Flexible since", overflow="fold")
    for entry in rows:
        first, last = entry["versions"]
        table.add_row(
            "" if entry["key"] < 0 else str(entry["key"]),
            entry["name"],
            str(first) if first == last else f"{first}-{last}",
            "never" if entry["flexible"] is None else str(entry["flexible"]),
        )
    out.print(table)
