"""Groups of consumers between the classic and the consumer protocol, without a stop (KIP-848).

policy                which way: group.consumer.migration.policy
groups                consumer groups that may be converted: when they are
upgrade, downgrade    what becomes of a group and its members
join                  JoinGroup of classic members in consumer groups
classic_members       SyncGroup, Heartbeat and LeaveGroup of theirs
timeouts              their join and sync timeouts
classic_metadata      what a consumer group keeps of them
embedded_protocol     subscriptions and assignments as classic consumers have them, in bytes
"""
