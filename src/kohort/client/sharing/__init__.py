"""What a share consumer is made of.

Pure, no socket and no clock: `membership` (the group), `share_session` (what a broker knows of our partitions),
`acknowledgements` (what became of each acquired offset), `acquired` (records that a broker has locked for us),
`shared_partitions` (what there is of each partition).

In the event loop: `member_loop` (heartbeats), `share_fetcher` (one a broker), `share_fetchers` (who fetches what, and
what the answers mean), `delivery` (records for the user), `running_share_consumer` (all of them, put together).
"""
