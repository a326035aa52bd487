"""What a consumer is made of.

- `partitions` keeps the consumed partition info: where each partition is read, up to where it was fetched and consumed.
- `fetch_session` says what a fetch asks for (KIP-227); `fetcher` asks it, one fetcher a broker; `fetchers` lists them.
- `answers` turns what came into pieces to give; `decoding` turns pieces into records or columns, when it's their
  turn, with what `kohort.client.column_codec` loads.
- `delivery` gives them to the user, and knows what of it was consumed.
- `positions` finds the offsets to begin at; `offsets` looks offsets up at the partitions' leaders.
- `rebalance_handler` revokes and assigns as the coordinator connector says; `commits` commits.
- `consumption` puts all this together for `kohort.client.consumer`; `settings` are the consumer's own.

`partitions`, `fetch_session`, `answers` and `decoding` do no I/O and know no clock.
"""
