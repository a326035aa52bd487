"""Streams applications in classic groups, on brokers without streams groups: without I/O or clock.

    subscription, assignment   what members tell their leader, and what it answers, in versions (`versions`)
    subscription_prefix        what any leader can read of any member
    led_group                  what a leader is given, and what comes out
    leader                     who gets what in a rebalance
    group_members              what members wrote, and which topology the group runs
    placing                    where tasks are to be, and where they stay while others warm up
    hand_over                  who has to close a task before its new owner gets it

The brokers know nothing of tasks: they hand bytes from members to the leader and back.
"""
