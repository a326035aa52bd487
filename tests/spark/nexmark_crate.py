"""What the events of the crate `nexmark` are like: facts in nexmark_crate.json, which stands for the crate in tests.

python -m tests.spark.nexmark_crate    # builds the crate with cargo, and writes the facts anew
"""

from __future__ import annotations

import io
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

CRATE: Final = "0.2.0"
SAMPLE: Final = 200_000
"""Of so many events."""
FACTS: Final = Path(__file__).with_name("nexmark_crate.json")

_CAMEL: Final = {
    "email_address": "emailAddress", "credit_card": "creditCard", "date_time": "dateTime", "item_name": "itemName",
    "initial_bid": "initialBid",
}  # fmt: skip
_HOT: Final = {"seller": 0, "bidder": 1, "auction": 0}
"""Of a hundred persons or auctions the hot one's place."""


def facts_of(table: pa.Table) -> dict[str, Any]:
    """What columns are like, and how they go together."""
    facts: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_string(column.type):
            lengths = pc.utf8_length(column)
            facts[f"{name}: length"] = [pc.min(lengths).as_py(), pc.mean(lengths).as_py(), pc.max(lengths).as_py()]
            column = column.dictionary_encode()
        elif name not in ("dateTime", "expires"):
            numbers = np.log(column.to_numpy())
            facts[name] = [float(numbers.mean()), *np.quantile(numbers, [0.05, 0.25, 0.5, 0.75, 0.95])]
        counts = np.sort(column.value_counts().field("counts").to_numpy())[::-1]
        facts[f"{name}: distinct"] = len(counts)
        facts[f"{name}: the most frequent"] = counts[:10].sum() / len(column)
        if name in _HOT:
            facts[f"{name}: hot"] = float(((column.to_numpy() - 1_000) % 100 == _HOT[name]).mean())
    times = table["dateTime"].cast(pa.int64()).to_numpy()
    facts["span"] = int(times[-1] - times[0])
    if "expires" in table.column_names:
        open_for = table["expires"].cast(pa.int64()).to_numpy() - times
        facts["open for"] = [float(open_for.mean()), *np.quantile(open_for, [0, 0.25, 0.5, 0.75, 1])]
    if "auction" in table.column_names:
        pairs = table.group_by(["auction", "bidder"]).aggregate([])
        facts["pairs of auction and bidder"] = pairs.num_rows
        facts["bids with a channel id"] = pc.mean(
            pc.match_substring(table["url"], "channel_id=").cast(pa.int8())
        ).as_py()
    return facts


def write_facts() -> None:
    """Build the crate, have it draw events, and keep what they are like."""
    with tempfile.TemporaryDirectory() as target:
        install = ["cargo", "install", "nexmark", "--version", CRATE, "--features", "bin", "--root", target]
        subprocess.run(install, check=True)
        drawn = subprocess.run(
            [Path(target, "bin", "nexmark"), "--number", str(SAMPLE), "--no-wait"], stdout=subprocess.PIPE, check=True
        )
    found = {
        kind: {"columns": table.column_names, "rows": table.num_rows, "facts": facts_of(table)}
        for kind, table in _read(drawn.stdout).items()
    }
    FACTS.write_text(json.dumps(found, indent=1, default=float) + "\n")


def _read(lines: bytes) -> dict[str, pa.Table]:
    read = pa.json.read_json(io.BytesIO(lines), pa.json.ReadOptions(block_size=len(lines)))
    tables = {}
    for kind in read.column_names:
        some = read.filter(pc.is_valid(read[kind]))[kind].combine_chunks()
        table = pa.Table.from_struct_array(some)
        tables[kind] = table.rename_columns([_CAMEL.get(name, name) for name in table.column_names])
    return tables


if __name__ == "__main__":
    write_facts()
