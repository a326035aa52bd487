"""Consumer groups (KIP-848): the broker assigns partitions to members, which move to them one by one."""
