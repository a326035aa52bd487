"""Members of streams groups (KIP-1071): heartbeats, tasks and fencing, without I/O or clock.

`kohort.client.streams_member` puts asyncio around it.
"""
