"""The same aggregation, written for each contender; each is a program of its own."""
