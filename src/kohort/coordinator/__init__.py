"""Group and transaction coordinators as pure state machines: no I/O, no clock, no randomness of their own."""
