"""Streams groups in virtual time: applications with state, on processes that crash, restore, restart and scale."""
