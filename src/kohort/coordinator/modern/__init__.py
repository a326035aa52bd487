"""What the modern groups have in common: consumer groups (KIP-848), share groups (KIP-932), streams groups (KIP-1071).

The members of such a group hold *items*, each in a *role*: partitions of topics, for which there is but one role; or
the tasks of a streams application, which are run, kept as a standby, or warmed up. A group has a *target* that says who
shall hold what in the end, and each member moves towards it on its own, with its heartbeats:

    group epoch        rises whenever something changes that the target depends on
    assignment epoch   the group epoch that the target was made for
    member epoch       the assignment epoch that a member has reached

What differs from one kind of group to the next is said in a `Rules` object: which roles only one member may have,
what becomes of an item whose role changes, and whether anybody waits for anybody (share groups don't).
"""
