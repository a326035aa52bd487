"""Streams applications in classic groups, on brokers without streams groups: without I/O or clock.

Members tell their leader what they have (`subscription`), and the leader answers each with its tasks (`assignment`).
Both are messages in versions, which a rolling restart may mix (`versions`).
"""
