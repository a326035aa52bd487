"""Shared by several handlers: authorization of the cluster, look-up of partitions, changes of configurations."""
