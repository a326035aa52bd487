"""What instances of contenders run."""
