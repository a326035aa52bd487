"""The coordinator connector without I/O: a table of transitions, and what the two group protocols make of it."""
