"""`kohort wire`: Kafka's wire protocol, from the declarations that the codecs are compiled from."""

from __future__ import annotations

import typer

from kohort.cli.wire import batch, decode, encode, listing, roundtrip, show

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.command("list")(listing.list_messages)
app.command("show")(show.show)
app.command("decode")(decode.decode)
app.command("encode")(encode.encode)
app.command("roundtrip")(roundtrip.roundtrip)
app.command("batch")(batch.batch)
