"""Membership of a consumer in its group, without I/O: joins, heartbeats, revokes, fencing, timeouts.

- `member_states`: the table of states, events and actions; `state_machine` goes by it, and returns `effects`.
- `group_protocol`: what the table needs of a group protocol; `classic_group_protocol`, `consumer_group_protocol`.
- `consumer_protocol`: subscriptions and assignments that members of classic groups send each other.
- `offset_requests`: OffsetCommit and OffsetFetch in all versions.
- `delegate`: the consumer, as the member sees it; `settings`.

`kohort.client.coordinator_connector` does the I/O.
"""
