"""What `kohort place` does: groups out of files and into them, and tables of placements side by side."""
