"""Members of streams groups (KIP-1071): topologies, tasks and what becomes of them, without I/O or clock.

`kohort.client.streams_member` puts asyncio around it.
"""
