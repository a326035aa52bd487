"""What `kohort place` does: groups out of files and from brokers, what-if changes, placements side by side."""
