"""What a consumer is made of.

- `running_consumer` puts the parts together for `kohort.client.consumer`; `settings`.
- `consumed_partitions`: each partition's fetch state, queue, and fetched, given and consumed offsets.
- `fetchers`, `fetcher`: one fetcher for each broker; `fetch_session`: fetch requests (KIP-227).
- `completed_fetch`: checks fetched batches; `decoding` turns them into records or columns, when it's their turn, with
  the module that `kohort.client.column_codec` loads.
- `fetch_collector` hands records to the user, and knows which are consumed; `read_loop`: the user's loops.
- `positions`: the offsets to begin at; `log_offsets` looks offsets up at the partitions' leaders.
- `rebalance_handler` revokes and assigns as the coordinator connector says; `commits`.

`consumed_partitions`, `fetch_session`, `completed_fetch` and `decoding` do no I/O and know no clock.
"""
