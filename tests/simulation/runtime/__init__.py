"""Whole instances in virtual time: the real coordinator, member and task manager; model logs, stores, jobs and network.

`application` says what is run; `broker` (with `logs`, `transactions`, `coordinator`) is the cluster, `network` the way
there; `process` has a disk and runs an `instance`, whose `interpreter` does effects with `activation`, `producer`,
`stores` and `jobs`; `oracle` and `checker` say what must hold; `scenario` is what happens, from a seed.
"""
