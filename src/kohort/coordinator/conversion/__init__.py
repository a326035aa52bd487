"""Groups of consumers between the classic and the consumer protocol, without a stop (KIP-848).

policy                which way: group.consumer.migration.policy
embedded_protocol     subscriptions and assignments as classic consumers have them, in bytes
"""
