"""What the modern groups have in common: consumer groups (KIP-848), share groups (KIP-932), streams groups (KIP-1071).

The members of such a group hold *items*, each in a *role*: partitions of topics, for which there is only one role; or
the tasks of a streams application, which are active, standby or warm-up. The *target* assignment says what each member
has to get in the end. With its heartbeats, each member moves from its *current* assignment towards it:

    group epoch        rises whenever something changes that the target depends on
    assignment epoch   the group epoch that the target was made for
    member epoch       the assignment epoch that a member has reached

A `Rules` object says what differs between kinds of groups: which roles are exclusive, how the role of an item changes,
and whether members wait for each other (in share groups they don't).

What a kind of groups is made of, and what of it is here:

    group       the state that its records make, and its soft state         `ModernGroup`
    draft       what one step is going to change                            `ModernDraft`
    groups      all groups of a shard: heartbeats, timeouts, log, listing   `ModernGroups`
    heartbeats  what a member's heartbeat does                              `reconcile`, `member_identity`, `fencing`
"""
