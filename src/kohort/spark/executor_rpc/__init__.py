"""The RPC between executors and the driver: what a split reads, prior values of keys, reports of what was read."""
