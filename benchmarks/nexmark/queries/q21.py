"""Add a channel id: of four channels by name, of others from the URL; bids without one are left out."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources

CHANNEL_ID = """
    coalesce(map('apple', '0', 'google', '1', 'facebook', '2', 'baidu', '3')[lower(channel)],
             nullif(regexp_extract(url, '[?&]channel_id=([^&]*)'), '')) AS channel_id
"""


def program(nexmark: Sources, results: str) -> None:
    channels = nexmark.bids.select("auction", "bidder", "price", "channel", CHANNEL_ID)
    channels.where("channel_id IS NOT NULL").to(results)
